"""``vcctl version``: four lines of Volcano's, and the runtime in place of Go's (spec 08 section 2.1)."""

from __future__ import annotations

import os
import platform

from stromboli import __version__
from stromboli.cli.commanding.running import Invocation

UNKNOWN = "Not provided."


def show_version(invocation: Invocation) -> None:
    """Print the version."""
    invocation.say("API Version: v1alpha1")
    invocation.say(f"Version: {__version__}")
    invocation.say(f"Git SHA: {UNKNOWN}")
    invocation.say(f"Built At: {UNKNOWN}")
    invocation.say(f"Python Version: {platform.python_version()}")
    invocation.say(f"Python OS/Arch: {os.uname().sysname.lower()}/{os.uname().machine}")
