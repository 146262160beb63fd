"""The jobflow controller: runs jobs in the order of their dependencies (spec 03 section 5)."""
