"""The bill of materials: what went into the image, as CycloneDX 1.5 JSON."""

from __future__ import annotations

import datetime
import json
import uuid
from collections.abc import Iterable
from urllib.parse import quote

from images.debian import CODENAME, Package
from images.wheels import Wheel

PATH = "usr/share/sbom/stromboli.cdx.json"

Component = dict[str, object]


def bill(version: str, packages: Iterable[Package], wheels: Iterable[Wheel], epoch: int) -> bytes:
    """The document; the same parts give the same bytes, whatever order they come in."""
    components = sorted(
        [*map(package_component, packages), *map(wheel_component, wheels)], key=lambda part: str(part["purl"])
    )
    parts = json.dumps(components, sort_keys=True)
    document = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "serialNumber": uuid.uuid5(uuid.NAMESPACE_URL, parts).urn,
        "version": 1,
        "metadata": {
            "timestamp": datetime.datetime.fromtimestamp(epoch, datetime.UTC).isoformat(),
            "component": {"type": "container", "name": "stromboli", "version": version},
        },
        "components": components,
    }
    return json.dumps(document, indent=1).encode() + b"\n"


def package_component(package: Package) -> Component:
    """A package of Debian."""
    name, version = quote(package.name, safe=""), quote(package.version, safe="")
    purl = f"pkg:deb/debian/{name}@{version}?arch={package.architecture}&distro={CODENAME}"
    return _component(package.name, package.version, package.sha256, purl)


def wheel_component(wheel: Wheel) -> Component:
    """A distribution of the Python index."""
    name = wheel.name.lower().replace("_", "-")
    component = _component(
        wheel.name, wheel.version, wheel.sha256, f"pkg:pypi/{quote(name)}@{quote(wheel.version, safe='')}"
    )
    if wheel.licence:
        component["licenses"] = [{"license": {"name": wheel.licence}}]
    return component


def _component(name: str, version: str, sha256: str, purl: str) -> Component:
    component: Component = {"type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl}
    if sha256:
        component["hashes"] = [{"alg": "SHA-256", "content": sha256}]
    return component
