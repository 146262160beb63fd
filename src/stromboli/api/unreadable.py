"""What all ways have in common in which an object turns out not to be readable."""

from __future__ import annotations


class Unreadable(ValueError):
    """An object, or a part of it, is not of the shape of its kind; the text says what and, where it is known, in which
    field. Reading it again will not help until it changes."""
