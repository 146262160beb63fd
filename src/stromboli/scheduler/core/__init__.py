"""Pure scheduling decisions: the cluster mirrored in arrays, a journal of tentative changes, one cycle over both.

Nothing here does I/O, reads a clock or writes a log. See ``docs/adr/0010-array-scheduling.md``.
"""
