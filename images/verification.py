"""Looks at a finished root file system: do the processes start in it, and is it small enough?"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from images import ImageError
from images.rootfs import HOME, USER_ID, python_command
from images.running import run
from images.wheels import COMMANDS

PROCESSES = ("stromboli-controllers", "stromboli-scheduler", "stromboli-webhooks", "stromboli-dashboard")
LIMIT = 200_000_000
SECONDS = 60.0
# Every compiled module of the standard library must find its libraries; all of our modules must load, and what they
# import anywhere, since some of it is loaded only when a configuration asks for it.
IMPORTS = """
import _ssl, ast, importlib, pathlib, stromboli
names = {path.name.split(".")[0] for path in pathlib.Path(_ssl.__file__).parent.glob("*.so")}
place = pathlib.Path(stromboli.__file__).parent
for path in place.rglob("*.py"):
    if path.name != "__main__.py":
        names.add(".".join(path.relative_to(place.parent).with_suffix("").parts).removesuffix(".__init__"))
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names.add(node.module)
for name in sorted(names):
    importlib.import_module(name)
"""


def verify(root: Path, version: str) -> None:
    """Starts each process once and weighs the files.

    As root the processes run shut into the image, as the user they will run as; without root's rights with the image's
    Python and libraries where they lie.

    Raises:
        ImageError: a process or a module does not start, tells another version, or the image is too big.
    """
    size = weight(root)
    if size >= LIMIT:
        raise ImageError(f"the image holds {size:,} bytes; the limit is {LIMIT:,}")
    enter: list[str | Path] = python_command(root)
    inside = os.geteuid() == 0
    if inside:
        enter = ["chroot", f"--userspec={USER_ID}:{USER_ID}", root, "/usr/bin/python3"]
    environment = {"HOME": HOME, "LANG": "C.UTF-8", "PATH": "/usr/bin:/usr/sbin"} | (
        {} if inside else {"PYTHONHOME": str(root / "usr")}
    )
    run([*enter, "-B", "-c", IMPORTS], env=environment, seconds=SECONDS, failed="a module of Python's does not load")
    for process in PROCESSES:
        # The launcher itself as root, so that its first line is tried too.
        launcher = root / COMMANDS / process
        command = [*enter[:-1], f"/{COMMANDS}/{process}"] if inside else [*enter, "-BsP", launcher]
        said = run([*command, "--version"], env=environment, seconds=SECONDS, failed=f"{process} does not start")
        if said.decode().split() != [process, version]:
            raise ImageError(f"{process} --version says {said.decode().strip()!r}, not {version}")


def weight(root: Path) -> int:
    """Bytes of all files."""
    states = (os.lstat(os.path.join(place, name)) for place, _names, files in os.walk(root) for name in files)
    return sum(state.st_size for state in states if stat.S_ISREG(state.st_mode))
