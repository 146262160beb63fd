"""The colocation-configuration controller: tells pods how the node agent shall treat them (spec 03 section 11)."""
