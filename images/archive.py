"""Writes a root file system as an image archive that both OCI tools and Docker read.

Layers are plain tar: what compresses them on the way to a registry is the pusher's choice, and the bytes here depend on
no compressor's version. What changes seldom comes first, so that an upgrade of the application moves one small layer.
"""

from __future__ import annotations

import datetime
import hashlib
import io
import json
import os
import stat
import tarfile
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO

from images.rootfs import HOME, USER_ID
from images.sbom import PATH as SBOM_PATH
from images.wheels import COMMANDS, DIST_PACKAGES

CONFIG: Mapping[str, object] = {
    "User": f"{USER_ID}:{USER_ID}",
    "Env": ["PATH=/usr/local/bin:/usr/bin", f"HOME={HOME}", "LANG=C.UTF-8"],
    "Cmd": ["stromboli", "--help"],
    "WorkingDir": "/",
}
LAYERS = ("packages of Debian", "packages of the Python index", "stromboli")

CONFIG_TYPE = "application/vnd.oci.image.config.v1+json"
INDEX_TYPE = "application/vnd.oci.image.index.v1+json"
LAYER_TYPE = "application/vnd.oci.image.layer.v1.tar"
MANIFEST_TYPE = "application/vnd.oci.image.manifest.v1+json"


@dataclass(frozen=True, slots=True)
class Blob:
    """Content by its digest."""

    media_type: str
    digest: str
    size: int

    @property
    def path(self) -> str:
        """Where it lies in the archive."""
        return f"blobs/sha256/{self.digest}"

    def descriptor(self) -> dict[str, object]:
        """How other blobs refer to it."""
        return {"mediaType": self.media_type, "digest": f"sha256:{self.digest}", "size": self.size}


def layer_of(path: PurePosixPath) -> int:
    """Index in LAYERS of the layer that a file belongs to."""
    if path.is_relative_to(COMMANDS) or path == PurePosixPath(SBOM_PATH):
        return 2
    if not path.is_relative_to(DIST_PACKAGES):
        return 0
    package = path.relative_to(DIST_PACKAGES).parts[:1]
    return 2 if package and package[0].split("-")[0] == "stromboli" else 1


def write(
    root: Path,
    reference: str,
    version: str,
    architecture: str,
    epoch: int,
    target: Path,
    *,
    config: Mapping[str, object] = CONFIG,
) -> str:
    """Writes the image under ``target``; returns the digest of its manifest, by which registries will know it.

    ``reference`` is the name with its tag that tools give the image when they load it.
    """
    # Beside the target, which has room for it and lets the finished file be moved.
    with tempfile.TemporaryDirectory(prefix=".blobs-", dir=target.parent) as place:
        blobs = Path(place)
        layers = [_write_layer(root, paths, epoch, blobs) for paths in split(root)]
        settings = _store(blobs, CONFIG_TYPE, configuration(layers, version, architecture, epoch, config))
        content = {
            "schemaVersion": 2,
            "mediaType": MANIFEST_TYPE,
            "config": settings.descriptor(),
            "layers": [layer.descriptor() for layer in layers],
        }
        manifest = _store(blobs, MANIFEST_TYPE, content)
        unfinished = blobs / "archive"
        with tarfile.open(unfinished, "w", format=tarfile.PAX_FORMAT) as archive:
            for name, text in _entry_points(reference, settings, layers, manifest).items():
                _add(archive, name, epoch, io.BytesIO(text), len(text))
            for blob in sorted({*layers, settings, manifest}, key=lambda blob: blob.digest):
                with (blobs / blob.digest).open("rb") as file:
                    _add(archive, blob.path, epoch, file, blob.size)
        os.replace(unfinished, target)
    return f"sha256:{manifest.digest}"


def split(root: Path) -> list[list[PurePosixPath]]:
    """Paths of each layer, sorted; each layer has the directories above its files."""
    layers: list[set[PurePosixPath]] = [set() for _ in LAYERS]
    for path in _walk(root):
        layer = layers[layer_of(path)]
        layer.add(path)
        layer.update(path.parents)
    return [sorted(layer - {PurePosixPath(".")}) for layer in layers]


def _walk(root: Path) -> Iterator[PurePosixPath]:
    for directory, names, files in os.walk(root):
        here = PurePosixPath(os.path.relpath(directory, root))
        yield from (here / name for name in (*names, *files))


def configuration(
    layers: Iterable[Blob], version: str, architecture: str, epoch: int, config: Mapping[str, object] = CONFIG
) -> dict[str, object]:
    """The image's configuration."""
    labels = {
        "org.opencontainers.image.title": "stromboli",
        "org.opencontainers.image.version": version,
        "org.opencontainers.image.licenses": "Apache-2.0",
    }
    layers = list(layers)
    return {
        "architecture": architecture,
        "os": "linux",
        "created": _time(epoch),
        "config": {**config, "Labels": labels},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{layer.digest}" for layer in layers]},
        "history": [{"created": _time(epoch), "created_by": name} for name in LAYERS[: len(layers)]],
    }


def _time(epoch: int) -> str:
    return datetime.datetime.fromtimestamp(epoch, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _entry_points(reference: str, config: Blob, layers: Iterable[Blob], manifest: Blob) -> dict[str, bytes]:
    """The files by which tools find their way in: index.json for OCI's, manifest.json for Docker's."""
    names = {"io.containerd.image.name": reference, "org.opencontainers.image.ref.name": reference.rpartition(":")[2]}
    index = {
        "schemaVersion": 2,
        "mediaType": INDEX_TYPE,
        "manifests": [{**manifest.descriptor(), "annotations": names}],
    }
    docker = [{"Config": config.path, "RepoTags": [reference], "Layers": [layer.path for layer in layers]}]
    return {
        "oci-layout": _json({"imageLayoutVersion": "1.0.0"}),
        "index.json": _json(index),
        "manifest.json": _json(docker),
    }


def _write_layer(root: Path, paths: Iterable[PurePosixPath], epoch: int, blobs: Path) -> Blob:
    unfinished = blobs / "layer"
    with tarfile.open(unfinished, "w", format=tarfile.PAX_FORMAT) as layer:
        for path in paths:
            _add_path(layer, root, path, epoch)
    with unfinished.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    blob = Blob(LAYER_TYPE, digest, unfinished.stat().st_size)
    unfinished.rename(blobs / digest)
    return blob


def _add_path(layer: tarfile.TarFile, root: Path, relative: PurePosixPath, epoch: int) -> None:
    path = root / relative
    status = path.lstat()
    mode = stat.S_IMODE(status.st_mode)
    if path.is_symlink():
        entry = _entry(str(relative), epoch, 0o777)
        entry.type, entry.linkname = tarfile.SYMTYPE, os.readlink(path)
        layer.addfile(entry)
    elif path.is_dir():
        entry = _entry(f"{relative}", epoch, mode)
        entry.type = tarfile.DIRTYPE
        layer.addfile(entry)
    else:
        with path.open("rb") as file:
            _add(layer, str(relative), epoch, file, status.st_size, mode)


def _add(archive: tarfile.TarFile, name: str, epoch: int, content: IO[bytes], size: int, mode: int = 0o644) -> None:
    entry = _entry(name, epoch, mode)
    entry.size = size
    archive.addfile(entry, content)


def _entry(name: str, epoch: int, mode: int) -> tarfile.TarInfo:
    """An entry that belongs to root, whoever builds; one time for all."""
    entry = tarfile.TarInfo(name)
    entry.mtime, entry.mode = epoch, mode
    return entry


def _store(blobs: Path, media_type: str, content: Mapping[str, object]) -> Blob:
    data = _json(content)
    blob = Blob(media_type, hashlib.sha256(data).hexdigest(), len(data))
    (blobs / blob.digest).write_bytes(data)
    return blob


def _json(content: object) -> bytes:
    return json.dumps(content, separators=(",", ":")).encode()
