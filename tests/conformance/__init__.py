"""Language-neutral vectors of the original's behaviour, run against this system (``python -m tests.conformance``)."""
