"""The bill of materials."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st
from images.debian import Package
from images.sbom import bill
from images.wheels import Wheel

LIBC = Package("libc6", "2.36-9+deb12u14", "amd64", "a" * 64, "")
LIBSTDCXX = Package("libstdc++6", "12.2.0-14", "amd64", "b" * 64, "")
NUMPY = Wheel("numpy", "2.4.6", "BSD-3-Clause AND MIT", "c" * 64)
CLIENT = Wheel("kubernetes_asyncio", "36.1.0", "", "")


def test_parts_have_addresses_that_scanners_understand() -> None:
    document = json.loads(bill("0.1.0", [LIBC, LIBSTDCXX], [NUMPY, CLIENT], 0))
    assert [part["purl"] for part in document["components"]] == [
        "pkg:deb/debian/libc6@2.36-9%2Bdeb12u14?arch=amd64&distro=bookworm",
        "pkg:deb/debian/libstdc%2B%2B6@12.2.0-14?arch=amd64&distro=bookworm",
        "pkg:pypi/kubernetes-asyncio@36.1.0",
        "pkg:pypi/numpy@2.4.6",
    ]
    assert document["components"][3]["hashes"] == [{"alg": "SHA-256", "content": "c" * 64}]
    assert document["components"][3]["licenses"] == [{"license": {"name": "BSD-3-Clause AND MIT"}}]
    assert not {"hashes", "licenses"} & document["components"][2].keys()
    assert document["metadata"]["timestamp"] == "1970-01-01T00:00:00+00:00"


@given(st.permutations([LIBC, LIBSTDCXX]), st.permutations([NUMPY, CLIENT]))
def test_order_of_parts_does_not_matter(packages: list[Package], wheels: list[Wheel]) -> None:
    assert bill("1", packages, wheels, 5) == bill("1", [LIBC, LIBSTDCXX], [NUMPY, CLIENT], 5)


def test_another_version_of_a_part_is_another_document() -> None:
    one, other = (json.loads(bill("1", [part], [], 0)) for part in (LIBC, LIBSTDCXX))
    assert one["serialNumber"] != other["serialNumber"]
