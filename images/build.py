"""Builds the image: ``python -m images.build --output DIR``.

``--root DIR`` stops at the root file system; the Dockerfile uses it.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from images import ImageError, archive, debian, rootfs, sbom, verification, wheels
from images.running import run

PROJECT = Path(__file__).parents[1]
REPOSITORY = "docker.io/stromboli/stromboli"  # the chart's default


@dataclass(frozen=True, slots=True)
class Options:
    """What is to be built, and where it goes."""

    output: Path | None
    root: Path | None
    reference: str
    version: str
    epoch: int


def main(arguments: Sequence[str] | None = None) -> int:
    """Builds what the arguments ask for; returns the exit code."""
    try:
        options = parse(sys.argv[1:] if arguments is None else arguments, os.environ)
        prepare_output(options.output)
        if options.root is not None:
            build_root(options.root, options)
        if options.output is not None:
            with tempfile.TemporaryDirectory(prefix="stromboli-image-") as place:
                root = options.root or build_root(Path(place, "root"), options)
                write_archive(root, options.output, options)
    except ImageError as error:
        print(f"images.build: {error}", file=sys.stderr)
        return 1
    return 0


def parse(arguments: Sequence[str], environment: Mapping[str, str]) -> Options:
    """Reads the arguments, and SOURCE_DATE_EPOCH for the time of every entry (0 if it is not set).

    Raises:
        ImageError: SOURCE_DATE_EPOCH is no whole number of seconds.
    """
    version = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]["version"]
    parser = argparse.ArgumentParser(prog="images.build", description="Build the container image without an engine.")
    parser.add_argument("--output", type=Path, metavar="DIR", help="write the archive and its SBOM into DIR")
    parser.add_argument(
        "--root", type=Path, metavar="DIR", help="leave the root file system in DIR, which must not exist"
    )
    parser.add_argument("--reference", default=f"{REPOSITORY}:{version}", help="name and tag (default: %(default)s)")
    given = parser.parse_args(arguments)
    if given.output is None and given.root is None:
        parser.error("one of --output and --root is needed")
    seconds = environment.get("SOURCE_DATE_EPOCH", "0")
    if not seconds.isdecimal():
        raise ImageError(f"SOURCE_DATE_EPOCH is {seconds!r}; set it to seconds since 1970, or unset it")
    return Options(given.output, given.root, given.reference, version, int(seconds))


def prepare_output(output: Path | None) -> None:
    """Makes the output directory before the long work, not after it.

    Raises:
        ImageError: it cannot be made.
    """
    try:
        if output is not None:
            output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ImageError(f"--output {output} cannot be made ({error.strerror}); name another directory") from error


def build_root(root: Path, options: Options) -> Path:
    """Makes and verifies the root file system.

    Raises:
        ImageError: ``root`` exists, packages cannot be had, or what was made of them does not run.
    """
    try:
        root.mkdir(parents=True)
    except FileExistsError as error:
        raise ImageError(f"--root {root} exists already; name a new directory") from error
    root.chmod(0o755)
    with tempfile.TemporaryDirectory(prefix="stromboli-packages-") as place:
        packages_at, wheels_at = Path(place, "debian"), Path(place, "wheels")
        packages_at.mkdir()
        wheels_at.mkdir()
        say("fetching packages of Debian")
        packages = debian.unpack(debian.fetch(packages_at), root)
        say("building and fetching wheels")
        parts = wheels.unpack(wheels.fetch(PROJECT, architecture(), wheels_at), root)
    wheels.write_commands(root)
    rootfs.furnish(root)
    bill = root / sbom.PATH
    bill.parent.mkdir(parents=True)
    bill.write_bytes(sbom.bill(options.version, packages, parts, options.epoch))
    rootfs.strip_debug_symbols(root)
    say("compiling modules")
    rootfs.compile_modules(root)
    rootfs.fix_modes_and_times(root, options.epoch)
    say("starting each process once")
    verification.verify(root, options.version)
    return root


def write_archive(root: Path, output: Path, options: Options) -> Path:
    """Writes the archive and the SBOM beside it; returns the archive's path."""
    name = f"stromboli-{options.version}-{architecture()}"
    target = output / f"{name}.tar"
    digest = archive.write(root, options.reference, options.version, architecture(), options.epoch, target)
    (output / f"{name}.cdx.json").write_bytes((root / sbom.PATH).read_bytes())
    say(f"{target} {target.stat().st_size / 1e6:.0f} MB {options.reference} {digest}")
    return target


def architecture() -> str:
    """This machine's architecture by Debian's name, which is the name that images use too."""
    return run(["dpkg", "--print-architecture"], failed="the architecture cannot be told").decode().strip()


def say(line: str) -> None:
    """Tells whoever waits what is going on."""
    print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main())
