"""Reading manifests: YAML or JSON files and folders, several documents a file, empty documents skipped."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import yaml

from stromboli.api import kinds, manifests

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_BY_KIND = {(kind.api_version, kind.kind): kind for kind in kinds.ALL}


class ManifestError(Exception):
    """A file that cannot be read as manifests; the text names the file and, where known, the line."""

    for_user = True


def kind_of(manifest: dict[str, Any], where: str) -> kinds.Kind:
    """The kind a manifest is of.

    Raises:
        ManifestError: apiVersion and kind name nothing that is known.
    """
    version, kind = manifest.get("apiVersion"), manifest.get("kind")
    found = _BY_KIND.get((str(version), str(kind)))
    if found is None:
        raise ManifestError(f"{where}: no kind {kind!r} in {version!r} is known")
    return found


def read(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every document under ``path`` (a file, or a folder in the order of its names) with the place it stands at.

    Raises:
        ManifestError: a file is missing, unreadable or not YAML, or a document is not an object.
    """
    if path.is_dir():
        for child in sorted(path.iterdir()):
            if child.suffix in (".yaml", ".yml", ".json"):
                yield from read(child)
        return
    try:
        documents = list(manifests.documents(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise ManifestError(f"{path}: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ManifestError(f"{path}: not YAML: {' '.join(str(error).split())}") from error
    for number, document in enumerate(documents, 1):
        if document is None:
            continue
        where = f"{path.name} (document {number})" if len(documents) > 1 else path.name
        if not isinstance(document, dict):
            raise ManifestError(
                f"{where}: expected an object with apiVersion and kind, found {type(document).__name__}"
            )
        yield where, document
