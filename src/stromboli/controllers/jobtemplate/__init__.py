"""The jobtemplate controller: tells each template which jobs were made from it (spec 03 section 6)."""
