"""Wheels: what is unpacked, what the metadata says, and the commands made from it."""

from __future__ import annotations

import email
import hashlib
import subprocess
import sys
import zipfile
from pathlib import Path, PurePosixPath

import pytest
from images.wheels import COMMANDS, DIST_PACKAGES, licence, platforms, unpack, unpack_wheel, write_commands
from images.wheels import destination as place_of

from images import ImageError

PLACES = {
    "a module": ("yaml/__init__.py", "yaml/__init__.py"),
    "a module of a wheel in two parts": ("x-1.data/purelib/x/a.py", "x/a.py"),
    "a compiled module of such a wheel": ("x-1.data/platlib/x/a.so", "x/a.so"),
    "a script, which an installer would rewrite": ("x-1.data/scripts/tool", None),
    "the data directory itself": ("x-1.data/", None),
    "a directory": ("yaml/", None),
    "type stubs": ("numpy/__init__.pyi", None),
    "the marker of types": ("numpy/py.typed", "numpy/py.typed"),
    "sources of compiled parts": ("uvloop/loop.pyx", None),
    "tests of a library": ("numpy/_core/tests/test_x.py", None),
    "a module that is only called so": ("aiohttp/test_utils.py", "aiohttp/test_utils.py"),
    "a package that builds extensions": ("numpy/f2py/crackfortran.py", None),
    "a bundled library": ("numpy.libs/libopenblas.so", "numpy.libs/libopenblas.so"),
}


@pytest.mark.parametrize(("name", "want"), PLACES.values(), ids=PLACES)
def test_place(name: str, want: str | None) -> None:
    assert place_of(name) == (want and PurePosixPath(want))


@pytest.mark.parametrize("name", ["../x.py", "/etc/passwd", "a/../../x.py", "x-1.data/purelib/../../x"])
def test_a_name_that_leads_out_is_refused(name: str) -> None:
    with pytest.raises(ImageError, match="leads out of the image"):
        place_of(name)


LICENCES = {
    "an expression wins": ("License-Expression: MIT\nLicense: other\n", "MIT"),
    "a short name": ("License: Apache 2.0\n", "Apache 2.0"),
    "the whole text is no name": (
        "License: Redistribution and\n        use in source\nClassifier: License :: OSI Approved :: BSD License\n",
        "BSD License",
    ),
    "classifiers": (
        "Classifier: License :: OSI Approved :: MIT License\nClassifier: Framework :: AsyncIO\n"
        "Classifier: License :: OSI Approved :: Apache Software License\n",
        "MIT License and Apache Software License",
    ),
    "nothing said": ("Name: x\n", ""),
}


@pytest.mark.parametrize(("metadata", "want"), LICENCES.values(), ids=LICENCES)
def test_licence(metadata: str, want: str) -> None:
    assert licence(email.message_from_string(metadata)) == want


def _wheel(directory: Path, files: dict[str, str]) -> Path:
    archive = directory / "stromboli-1.0-py3-none-any.whl"
    with zipfile.ZipFile(archive, "w") as wheel:
        for name, text in files.items():
            wheel.writestr(name, text)
    return archive


METADATA = {
    "other/METADATA": "Name: decoy\nVersion: 9\n",
    "stromboli-1.0.dist-info/METADATA": "Name: stromboli\nVersion: 1.0\nLicense: Apache-2.0\n\nName: in the text\n",
}


def test_a_wheel_is_unpacked_and_told(tmp_path: Path) -> None:
    archive = _wheel(tmp_path, METADATA | {"stromboli/__init__.py": "x = 1\n"})
    wheel = unpack_wheel(archive, tmp_path / "site")
    assert (wheel.name, wheel.version, wheel.licence) == ("stromboli", "1.0", "Apache-2.0")
    assert wheel.sha256 == hashlib.sha256(archive.read_bytes()).hexdigest()
    assert (tmp_path / "site/stromboli/__init__.py").read_text() == "x = 1\n"


def test_only_wheels_that_can_be_downloaded_again_have_a_digest(tmp_path: Path) -> None:
    own = _wheel(tmp_path, METADATA)
    other = tmp_path / "other-2-py3-none-any.whl"
    with zipfile.ZipFile(other, "w") as wheel:
        wheel.writestr("other-2.dist-info/METADATA", "Name: other\nVersion: 2\n")
    first, second = unpack([own, other], tmp_path / "root")
    assert (first.name, first.sha256) == ("stromboli", "")
    assert (second.name, len(second.sha256)) == ("other", 64)


def test_a_wheel_without_metadata_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(ImageError, match=r"stromboli-1\.0-py3-none-any\.whl has no METADATA"):
        unpack_wheel(_wheel(tmp_path, {"x.py": ""}), tmp_path / "site")


def test_commands_run_their_function_and_end_with_its_code(tmp_path: Path) -> None:
    entry_points = "[console_scripts]\nb = stromboli.b:main\na = stromboli.b:main\n[stromboli.plugins]\nz = z:z\n"
    files = {
        "stromboli-1.0.dist-info/entry_points.txt": entry_points,
        "stromboli/__init__.py": "",
        "stromboli/b.py": "def main():\n    return 7\n",
    }
    site = tmp_path / DIST_PACKAGES
    unpack_wheel(_wheel(tmp_path, METADATA | files), site)
    assert write_commands(tmp_path) == ["a", "b"]
    command = tmp_path / COMMANDS / "a"
    assert command.read_text().startswith("#!/usr/bin/python3.11 -sP\n")
    assert command.stat().st_mode & 0o777 == 0o755
    assert subprocess.run([sys.executable, command], env={"PYTHONPATH": str(site)}, timeout=30).returncode == 7


def test_platforms_go_from_the_base_down_to_the_oldest_that_is_published() -> None:
    names = platforms("aarch64")
    assert names[0] == "manylinux_2_36_aarch64"
    assert names[-2:] == ["manylinux_2_17_aarch64", "manylinux2014_aarch64"]
