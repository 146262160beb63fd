"""Makes ``messages.txt`` anew: ``python -m stromboli.localcluster.protobuf.extracting MODULE_DIR... > messages.txt``.

``MODULE_DIR`` are unpacked Go modules k8s.io/api, k8s.io/apimachinery and k8s.io/apiextensions-apiserver. Only names,
numbers and types of fields are taken. A line is ``PACKAGE.MESSAGE field=number:type ...``; a type is a scalar, a
message, ``[]type`` or ``{}type`` (a map); ``~`` before a field says that JSON has its fields inline.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from kubernetes_asyncio.client import models

GROUPS = (
    "admissionregistration", "apiextensions", "apps", "authentication", "authorization", "autoscaling", "batch",
    "coordination", "core", "networking", "policy", "rbac", "resource", "scheduling", "storage", "meta", "runtime",
    "intstr",
)  # fmt: skip
_PACKAGE = re.compile(r"^package ([\w.]+);", re.MULTILINE)
_MESSAGE = re.compile(r"^message (\w+) \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
_FIELD = re.compile(r"^\s*(optional|repeated|map<string, ?([.\w]+)>)\s+(?:([.\w]+)\s+)?(\w+) = (\d+);", re.MULTILINE)


def short(package: str) -> str:
    """``k8s.io.api.core.v1`` is ``core.v1``; ``k8s.io.apimachinery.pkg.apis.meta.v1`` is ``meta.v1``."""
    return re.sub(
        r"^k8s\.io\.(api|apimachinery\.pkg(\.apis|\.api|\.util)?|apiextensions_apiserver\.pkg\.apis)\.", "", package
    )


def lines(text: str) -> Iterator[str]:
    """One line for each message of a ``.proto`` file."""
    found = _PACKAGE.search(text)
    package = short(found[1]) if found else ""
    parts = package.split(".")
    if parts[0] not in GROUPS or (len(parts) > 1 and parts[1] != "v1"):
        return
    for name, body in _MESSAGE.findall(text):
        fields = " ".join(_field(package, name, *match) for match in _FIELD.findall(body))
        yield f"{package}.{name} {fields}".rstrip()


def _field(package: str, message: str, label: str, mapped: str, declared: str, name: str, number: str) -> str:
    declared = mapped or declared
    if declared.startswith(".k8s"):
        declared = short(declared[1:])
    elif declared[0].isupper():
        declared = f"{package}.{declared}"
    prefix = "{}" if mapped else "[]" if label == "repeated" else ""
    inline = "~" if "." in declared and not prefix and _is_inline(message, name) else ""
    return f"{inline}{name}={number}:{prefix}{declared}"


def _is_inline(message: str, field: str) -> bool:
    if field in ("metadata", "spec", "status"):
        return False
    prefixes = ("V1", "CoreV1", "RbacV1", "StorageV1", "AdmissionregistrationV1", "ApiextensionsV1", "ResourceV1")
    for prefix in prefixes:
        model = getattr(models, prefix + message, None)
        if model is not None:
            return field not in model.attribute_map.values()
    return False


def main(directories: list[str]) -> None:
    """Print the table."""
    found = {
        line
        for directory in directories
        for path in Path(directory).rglob("generated.proto")
        for line in lines(path.read_text(encoding="utf-8"))
    }
    print(
        "# Field numbers of Kubernetes API messages. Made by extracting.py from k8s.io/api (Apache-2.0); do not edit."
    )
    print("\n".join(sorted(found)))


if __name__ == "__main__":
    main(sys.argv[1:])
