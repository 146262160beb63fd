"""The archive, read back as container tools read it."""

from __future__ import annotations

import hashlib
import json
import os
import tarfile
from pathlib import Path, PurePosixPath
from typing import IO

import pytest

from images import archive

REFERENCE = "registry.example:5000/stromboli/stromboli:1.0"
SITE = "usr/local/lib/python3.11/dist-packages"
FILES = {
    "etc/passwd": "root",
    f"{SITE}/numpy/__init__.py": "n",
    f"{SITE}/stromboli/__init__.py": "s",
    f"{SITE}/stromboli-1.0.dist-info/METADATA": "m",
    f"{SITE}/strombolian.py": "not ours",
    "usr/local/bin/stromboli": "#!",
    "usr/share/sbom/stromboli.cdx.json": "{}",
}


def _root(place: Path, order: int = 1) -> Path:
    for name, text in list(FILES.items())[::order]:
        path = place / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (place / "usr/local/bin/stromboli").chmod(0o755)
    (place / "tmp").mkdir()
    (place / "tmp").chmod(0o1777)
    (place / "lib").symlink_to("usr/lib")
    return place


def _build(root: Path, target: Path) -> str:
    return archive.write(root, REFERENCE, "1.0", "amd64", 1_700_000_000, target)


@pytest.fixture
def image(tmp_path: Path) -> Path:
    _build(_root(tmp_path / "root"), tmp_path / "image.tar")
    return tmp_path / "image.tar"


def _open(files: tarfile.TarFile, name: str) -> IO[bytes]:
    content = files.extractfile(name)
    assert content is not None
    return content


def test_every_reference_leads_to_the_content_with_that_digest(image: Path) -> None:
    with tarfile.open(image) as files:
        (manifest,) = json.load(_open(files, "index.json"))["manifests"]
        pending, seen = [manifest], 0
        while pending:
            blob = pending.pop()
            data = _open(files, "blobs/" + blob["digest"].replace(":", "/")).read()
            assert (f"sha256:{hashlib.sha256(data).hexdigest()}", len(data)) == (blob["digest"], blob["size"])
            seen += 1
            if blob["mediaType"] == archive.MANIFEST_TYPE:
                content = json.loads(data)
                pending += [content["config"], *content["layers"]]
    assert seen == 2 + len(archive.LAYERS)


def test_docker_finds_the_same_layers_under_the_reference(image: Path) -> None:
    with tarfile.open(image) as files:
        (entry,) = json.load(_open(files, "manifest.json"))
        config = json.load(_open(files, entry["Config"]))
    assert entry["RepoTags"] == [REFERENCE]
    assert [f"sha256:{PurePosixPath(path).name}" for path in entry["Layers"]] == config["rootfs"]["diff_ids"]
    assert config["config"]["User"] == "65532:65532"
    assert config["created"] == "2023-11-14T22:13:20Z"


def test_another_image_has_settings_of_its_own(tmp_path: Path) -> None:
    settings = {"Cmd": ["sleep", "1"]}
    target = tmp_path / "image.tar"
    archive.write(_root(tmp_path / "root"), REFERENCE, "1.0", "amd64", 0, target, config=settings)
    with tarfile.open(target) as files:
        (entry,) = json.load(_open(files, "manifest.json"))
        config = json.load(_open(files, entry["Config"]))["config"]
    assert config["Cmd"] == ["sleep", "1"]
    assert "User" not in config


def test_containerd_finds_the_name(image: Path) -> None:
    with tarfile.open(image) as files:
        (manifest,) = json.load(_open(files, "index.json"))["manifests"]
    assert manifest["annotations"]["io.containerd.image.name"] == REFERENCE
    assert manifest["annotations"]["org.opencontainers.image.ref.name"] == "1.0"


def test_layers_together_are_the_root_again(image: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with tarfile.open(image) as files:
        for name in json.load(_open(files, "manifest.json"))[0]["Layers"]:
            with tarfile.open(fileobj=_open(files, name)) as layer:
                assert {(entry.uid, entry.gid, entry.mtime) for entry in layer} == {(0, 0, 1_700_000_000)}
                layer.extractall(out, filter="fully_trusted")
    assert {name: (out / name).read_text() for name in FILES} == FILES
    assert os.readlink(out / "lib") == "usr/lib"
    assert (out / "tmp").stat().st_mode & 0o7777 == 0o1777
    assert (out / "usr/local/bin/stromboli").stat().st_mode & 0o777 == 0o755


def test_same_files_are_the_same_bytes_whatever_order_they_came_in(tmp_path: Path) -> None:
    digests = [_build(_root(tmp_path / f"root{way}", way), tmp_path / f"{way}.tar") for way in (1, -1)]
    assert digests[0] == digests[1]
    assert (tmp_path / "1.tar").read_bytes() == (tmp_path / "-1.tar").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["-1.tar", "1.tar", "root-1", "root1"]


@pytest.mark.parametrize(
    ("path", "want"),
    [
        ("etc/passwd", 0),
        ("usr/share/sbom/other.json", 0),
        (SITE, 1),
        (f"{SITE}/numpy/__init__.py", 1),
        (f"{SITE}/strombolian.py", 1),
        (f"{SITE}/stromboli/__init__.py", 2),
        (f"{SITE}/stromboli-1.0.dist-info/METADATA", 2),
        ("usr/local/bin/stromboli", 2),
        ("usr/share/sbom/stromboli.cdx.json", 2),
    ],
)
def test_what_changes_with_a_release_is_in_the_last_layer(path: str, want: int) -> None:
    assert archive.layer_of(PurePosixPath(path)) == want
