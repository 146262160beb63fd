"""The ConfigMap of discovery: spec 03 section 8.2."""

from __future__ import annotations

import pytest

from stromboli.controllers.hypernode.configuration import BadConfiguration, parse

KEY = "volcano-controller.conf"
GOOD = """
networkTopologyDiscovery:
- source: ufm
  enabled: true
  interval: 10m
  credentials: {secretRef: {name: ufm-credentials, namespace: volcano-system}}
  config: {endpoint: https://ufm, insecureSkipVerify: true}
- source: roce
  enabled: false
- source: label
  enabled: true
  config:
    networkTopologyTypes:
      topo: [{nodeLabel: a}, {nodeLabel: b}]
"""


def test_a_whole_file() -> None:
    ufm, label = parse({KEY: GOOD})
    assert (ufm.source, ufm.seconds, ufm.config["endpoint"]) == ("ufm", 600.0, "https://ufm")
    assert ufm.credentials is not None and ufm.credentials.secret_ref is not None
    assert ufm.credentials.secret_ref.name == "ufm-credentials"
    assert (label.source, label.seconds) == ("label", 3600.0)


INTERVALS = {"90s": 90.0, "600000000000": 600.0, "0": 3600.0, "-5m": 3600.0, '""': None, "soon": None}


@pytest.mark.parametrize(("text", "want"), INTERVALS.items())
def test_intervals(text: str, want: float | None) -> None:
    document = {KEY: f"networkTopologyDiscovery: [{{source: label, enabled: true, interval: {text}}}]"}
    if want is None:
        with pytest.raises(BadConfiguration, match="is not a duration"):
            parse(document)
    else:
        assert parse(document)[0].seconds == want


@pytest.mark.parametrize("data", [None, {KEY: ""}, {KEY: "networkTopologyDiscovery:"}])
def test_nothing_is_configured(data: dict[str, str] | None) -> None:
    assert parse(data) == ()


BAD = {
    "no key": ({}, "config key not found in ConfigMap: volcano-controller.conf"),
    "no yaml": ({KEY: "a: ["}, "failed to parse config: "),
    "a list": ({KEY: "- x"}, "failed to parse config: "),
    "wrong types": (
        {KEY: "networkTopologyDiscovery: [{source: ufm, enabled: maybe}]"},
        r"networkTopologyDiscovery\[0\].enabled: must be true or false, not 'maybe'",
    ),
}


@pytest.mark.parametrize(("data", "text"), BAD.values(), ids=BAD.keys())
def test_what_cannot_be_read_is_one_line(data: dict[str, str], text: str) -> None:
    with pytest.raises(BadConfiguration, match=text) as caught:
        parse(data)
    assert "\n" not in str(caught.value)
