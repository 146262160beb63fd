"""How a runner says that a case cannot be asked of this system."""

from __future__ import annotations


class NotApplicable(Exception):
    """The case asks for something that this system does not have; the text says what."""
