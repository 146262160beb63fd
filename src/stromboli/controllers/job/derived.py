"""What is wrong with the name of an object that is named after its job, in terms of the job's own name.

Names of Services obey a stricter rule than those of jobs. Whether a name can be had is for the API server to say, whose
rules grow milder from release to release; when it has refused an object, this is what the job's owner can do. Pure.
"""

from __future__ import annotations

import re
from typing import Final

from stromboli.api import kinds
from stromboli.api.batch import Job
from stromboli.controllers.job.plugins import Attachment

LONGEST_SERVICE: Final = 63
_SERVICE = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")


def remedy(attachment: Attachment, job: Job) -> str:
    """What to do about the name of a refused object, with the field; empty if there is nothing wrong with the name."""
    name = attachment.name
    if attachment.kind != kinds.SERVICES or (len(name) <= LONGEST_SERVICE and _SERVICE.fullmatch(name)):
        return ""
    added = len(name) - len(job.name)
    return (
        f"metadata.name: the Service of the job is called {name} after it, and a Service's name has at most "
        f"{LONGEST_SERVICE} characters, of a-z, 0-9 and -, begins with a letter and does not end with -: submit the "
        f"job anew under such a name, of at most {LONGEST_SERVICE - added} characters"
    )
