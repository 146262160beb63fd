"""The application: its own wheel and those of constraints.txt, unpacked as an installer would.

pip only builds and downloads. Unpacking is done here, because an installer writes the path of its own interpreter and
the order of its work into what it installs.
"""

from __future__ import annotations

import email.parser
import hashlib
import shutil
import sys
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from email.message import Message
from importlib.metadata import Distribution
from pathlib import Path, PurePosixPath

from images import ImageError
from images.debian import PYTHON
from images.running import run

DIST_PACKAGES = PurePosixPath("usr/local/lib", PYTHON, "dist-packages")
COMMANDS = PurePosixPath("usr/local/bin")
OWN = "stromboli"
SOURCES = ("pyproject.toml", "README.md", "LICENSE", "src")
EXTRA = "otlp"  # without it a cluster's traces have no way out
GLIBC_MINOR = 36  # of Debian 12
MACHINES = {"amd64": "x86_64", "arm64": "aarch64"}

# What no process reads: sources of compiled parts, type stubs, tests of libraries.
LEFT_OUT_SUFFIXES = frozenset({".a", ".c", ".cpp", ".h", ".hpp", ".pxd", ".pxi", ".pyi", ".pyx"})
LEFT_OUT_DIRECTORIES = frozenset({"test", "tests"})
# What builds extensions, not what computes.
LEFT_OUT_PACKAGES = (PurePosixPath("numpy/distutils"), PurePosixPath("numpy/f2py"))


@dataclass(frozen=True, slots=True)
class Wheel:
    """One distribution of the Python index, or our own; ``sha256`` is empty for what nobody can download."""

    name: str
    version: str
    licence: str
    sha256: str


def fetch(project: Path, architecture: str, into: Path) -> list[Path]:
    """Builds the project's wheel and downloads those it needs, in the versions of constraints.txt.

    Raises:
        ImageError: no wheels are published for the architecture, or pip could not build or get them.
    """
    if architecture not in MACHINES:
        raise ImageError(f"no image for {architecture}: wheels are there for {' and '.join(MACHINES)}")
    source = into / "source"
    source.mkdir()
    for name in SOURCES:
        _copy(project / name, source / name)
    pip: list[str | Path] = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    run([*pip, "wheel", "--no-deps", "--wheel-dir", into, source], failed="pip cannot build the project's wheel")
    (own,) = into.glob("*.whl")
    command = [*pip, "download", "--only-binary", ":all:", "--constraint", project / "constraints.txt", "--dest", into]
    command += ["--implementation", "cp", "--python-version", PYTHON.removeprefix("python")]
    for platform in platforms(MACHINES[architecture]):
        command += ["--platform", platform]
    run([*command, f"{own}[{EXTRA}]"], failed="pip cannot download the wheels of constraints.txt")
    return sorted(into.glob("*.whl"))


def _copy(source: Path, target: Path) -> None:
    """Copies a file or tree without what earlier builds left in it."""
    if source.is_file():
        shutil.copy(source, target)
    else:
        shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))


def platforms(machine: str) -> list[str]:
    """Names of the platforms whose wheels run on the base, newest first."""
    return [*(f"manylinux_2_{minor}_{machine}" for minor in range(GLIBC_MINOR, 16, -1)), f"manylinux2014_{machine}"]


def unpack(archives: Sequence[Path], root: Path) -> list[Wheel]:
    """Unpacks the wheels into ``root``."""
    return [_without_digest(unpack_wheel(archive, root / DIST_PACKAGES)) for archive in archives]


def _without_digest(wheel: Wheel) -> Wheel:
    """Our own wheel has no digest worth telling: it holds the time of its packing, and is thrown away."""
    return replace(wheel, sha256="") if wheel.name == OWN else wheel


def unpack_wheel(archive: Path, site: Path) -> Wheel:
    """Unpacks one wheel into a directory of packages and returns what it says about itself.

    Raises:
        ImageError: the wheel has no metadata, or a name in it leads out of the directory.
    """
    metadata: Message | None = None
    with zipfile.ZipFile(archive) as files:
        for member in files.infolist():
            relative = destination(member.filename)
            if relative is None:
                continue
            content = files.read(member)
            if relative.name == "METADATA" and len(relative.parts) == 2 and relative.parts[0].endswith(".dist-info"):
                metadata = email.parser.BytesParser().parsebytes(content, headersonly=True)
            path = site / relative
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
            path.chmod(0o644)
    if metadata is None:
        raise ImageError(f"{archive.name} has no METADATA: not a wheel, or a broken download")
    return Wheel(
        metadata["Name"], metadata["Version"], licence(metadata), hashlib.sha256(archive.read_bytes()).hexdigest()
    )


def destination(name: str) -> PurePosixPath | None:
    """Where a member of a wheel goes, relative to the directory of packages; None if it is left out.

    Raises:
        ImageError: the name leads out of the directory.
    """
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts:
        raise ImageError(f"a wheel holds {name!r}, which leads out of the image")
    if path.parts[0].endswith(".data"):
        if len(path.parts) < 3 or path.parts[1] not in ("purelib", "platlib"):
            return None  # scripts, headers and data of libraries
        path = PurePosixPath(*path.parts[2:])
    left_out = (
        name.endswith("/")
        or path.suffix in LEFT_OUT_SUFFIXES
        or not LEFT_OUT_DIRECTORIES.isdisjoint(path.parts[:-1])
        or any(path.is_relative_to(package) for package in LEFT_OUT_PACKAGES)
    )
    return None if left_out else path


def licence(metadata: Message) -> str:
    """The licence as the metadata has it: an expression, else a short name, else what the classifiers say."""
    expression = metadata["License-Expression"]
    if expression:
        return str(expression)
    name = str(metadata["License"] or "").strip()
    if name and "\n" not in name:
        return name
    prefix = "License :: OSI Approved :: "
    found = [value.removeprefix(prefix) for value in metadata.get_all("Classifier", []) if value.startswith(prefix)]
    return " and ".join(found)


def write_commands(root: Path) -> list[str]:
    """Writes the project's commands into the image; returns their names."""
    (info,) = (root / DIST_PACKAGES).glob(f"{OWN}-*.dist-info")
    commands = Distribution.at(info).entry_points.select(group="console_scripts")
    (root / COMMANDS).mkdir(parents=True, exist_ok=True)
    for command in commands:
        path = root / COMMANDS / command.name
        path.write_text(launcher(command.module, command.attr))
        path.chmod(0o755)
    return sorted(commands.names)


def launcher(module: str, function: str) -> str:
    """A command's text. Neither the user's packages nor the script's directory are searched for modules."""
    return f"#!/usr/bin/{PYTHON} -sP\nimport sys\n\nfrom {module} import {function}\n\nsys.exit({function}())\n"
