"""Flags that many commands have. They are read by every command tree, so nothing is imported for them."""

from __future__ import annotations

from stromboli.cli.commanding.commands import Flag

OUTPUT = Flag("output", "output format: json, yaml, wide or name", "o", completes="json|yaml|wide|name")
OUTPUT_ONE = Flag("output", "output format: json, yaml or name", "o", completes="json|yaml|name")
OUTPUT_DATA = Flag("output", "output format: json or yaml", "o", completes="json|yaml")
WATCH = Flag("watch", "after listing, print what changes until interrupted", "w", default=False)
DRY_RUN = Flag(
    "dry-run", 'only "server": have the API server judge the request without carrying it out', completes="server|none"
)
