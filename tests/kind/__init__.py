"""`make e2e-kind` without Docker: its plan, and its whole course with programs that only note that they were called."""
