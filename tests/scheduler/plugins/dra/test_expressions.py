"""CEL selectors: what they see of a device, the parts of Kubernetes' libraries that are there, and how they fail."""

from __future__ import annotations

import pytest

from stromboli.scheduler.plugins.dra.expressions import SelectorError, matches
from tests.scheduler.plugins.dra.building import DRIVER, device

GPU = device(
    "gpu-0",
    capacity={"memory": "40Gi", "other.org/lanes": "16"},
    model="A100",
    cores=108,
    healthy=True,
    firmware="v1.10.0-rc.1",
)
OWN = f'device.attributes["{DRIVER}"]'

HOLD = {
    "driver": f'device.driver == "{DRIVER}"',
    "text": f'{OWN}.model == "A100"',
    "text among others": f'{OWN}.model in ["A100", "H100"]',
    "number": f"{OWN}.cores >= 100 && {OWN}.cores < 200",
    "truth": f"{OWN}.healthy",
    "presence": f'"model" in {OWN} && !("colour" in {OWN})',
    "presence by has": f"has({OWN}.model)",
    "domain that the device has nothing of is empty": '!("colour" in device.attributes["unheard.of"])',
    "single quotes": "device.attributes['unheard.of'].size() == 0",
    "regular expression": f'{OWN}.model.matches("^A[0-9]+$")',
    "quantity compared": f'device.capacity["{DRIVER}"].memory.compareTo(quantity("40960Mi")) == 0',
    "quantity equal": f'device.capacity["{DRIVER}"].memory == quantity("40960Mi")',
    "quantity greater": f'device.capacity["{DRIVER}"].memory.isGreaterThan(quantity("39.5Gi"))',
    "quantity less": f'device.capacity["{DRIVER}"].memory.isLessThan(quantity("1Ti"))',
    "quantity of another domain": 'device.capacity["other.org"].lanes.asInteger() == 16',
    "quantity arithmetic": 'quantity("1").add(quantity("500m")).sub(quantity("500m")) == quantity("1")',
    "quantity sign": 'quantity("0").sign() == 0 && quantity("1.5").isInteger() == false',
    "version before its release": f'{OWN}.firmware.isLessThan(semver("1.10.0"))',
    "version after an earlier one, by number": f'{OWN}.firmware.isGreaterThan(semver("1.9.9"))',
    "version parts": f"{OWN}.firmware.major() == 1 && {OWN}.firmware.minor() == 10 && {OWN}.firmware.patch() == 0",
    "bind": f'cel.bind(gpu, {OWN}, gpu.model == "A100" && gpu.cores > 1)',
    "binds within binds, with commas and brackets in text": (
        f'cel.bind(a, {OWN}, cel.bind(b, a.model, b != "),(" && b.startsWith("A")))'
    ),
}


@pytest.mark.parametrize("expression", HOLD.values(), ids=HOLD.keys())
def test_expressions_that_hold(expression: str) -> None:
    assert matches(expression, DRIVER, GPU)


REJECT = {
    "other driver": 'device.driver == "nic.example.com"',
    "other model": f'{OWN}.model == "H100"',
    "text is not a number": f'{OWN}.model == "108"',
    "too small": f'device.capacity["{DRIVER}"].memory.compareTo(quantity("80Gi")) >= 0',
    "pre-releases compare number by number": f'{OWN}.firmware.isGreaterThan(semver("1.10.0-rc.2"))',
}


@pytest.mark.parametrize("expression", REJECT.values(), ids=REJECT.keys())
def test_expressions_that_do_not_hold(expression: str) -> None:
    assert not matches(expression, DRIVER, GPU)


FAIL = {
    "attribute that is not there": (f'{OWN}.colour == "red"', "CEL runtime error: no such key: colour"),
    "no truth value": (f"{OWN}.cores", "CEL result of type int could not be converted to bool"),
    "not an expression": ("device.driver ==", "CEL compile error: "),
    "function that is not there": ('url("https://x") == 1', "CEL runtime error: .*url"),
    "fraction as integer": ('quantity("1.5").asInteger() == 1', "CEL runtime error: .*integer"),
    "version that is none": ('semver("one") == semver("1.0.0")', "CEL runtime error: .*semantic version"),
    "bind without body": ("cel.bind(a, 1)", "cel.bind takes a name, a value and an expression"),
    "bind without end": ("cel.bind(a, 1, a == 1", "cel.bind is not closed"),
}


@pytest.mark.parametrize(("expression", "want"), FAIL.values(), ids=FAIL.keys())
def test_expressions_that_fail_say_why(expression: str, want: str) -> None:
    with pytest.raises(SelectorError, match=want):
        matches(expression, DRIVER, GPU)
