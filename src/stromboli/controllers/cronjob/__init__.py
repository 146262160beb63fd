"""The cronjob controller: makes jobs on a schedule (spec 03 section 7)."""
