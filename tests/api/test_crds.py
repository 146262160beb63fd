"""Generated definitions against the reference ones (spec 01 section 26.1) and against the API server's rules."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from stromboli.api import crds, kinds
from tests.api.references import Json, needs_references, reference_crds

OURS: dict[str, Json] = {
    crd["metadata"]["name"]: crd for crd in json.loads(json.dumps(crds.custom_resource_definitions()))
}
THEIRS = reference_crds()

COMPARED = (
    "type",
    "format",
    "default",
    "enum",
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
    "pattern",
    "minItems",
    "maxItems",
    "required",
    "anyOf",
    "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-map-type",
    "x-kubernetes-int-or-string",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-validations",
    "nullable",
)
UNORDERED = frozenset({"required", "enum"})


def differences(theirs: Json, ours: Json, path: str = "") -> Iterator[str]:
    """Every way in which our schema is not the reference's."""
    for word in COMPARED:
        want, found = theirs.get(word), ours.get(word)
        if word in UNORDERED and want and found:
            want, found = sorted(want), sorted(found)
        if want != found:
            yield f"{path}: {word} is {found!r}, not {want!r}"
    for name, schema in theirs.get("properties", {}).items():
        if name not in ours.get("properties", {}):
            yield f"{path}.{name}: missing"
        else:
            yield from differences(schema, ours["properties"][name], f"{path}.{name}")
    for word in ("items", "additionalProperties"):
        if isinstance(theirs.get(word), dict):
            yield from differences(theirs[word], ours.get(word, {}), f"{path}[{word}]")


def version(crd: Json) -> Json:
    (only,) = crd["spec"]["versions"]
    assert isinstance(only, dict)
    return only


@needs_references
def test_there_is_a_definition_for_every_reference_and_no_more() -> None:
    assert set(OURS) == set(THEIRS)
    assert len(OURS) == 11


@needs_references
@pytest.mark.parametrize("name", THEIRS)
def test_names_scope_subresources_and_columns_agree(name: str) -> None:
    ours, theirs = OURS[name], THEIRS[name]
    assert {k: v for k, v in ours["spec"].items() if k != "versions"} == {
        k: v for k, v in theirs["spec"].items() if k != "versions"
    }
    for word in ("name", "served", "storage", "subresources", "additionalPrinterColumns"):
        assert version(ours).get(word) == version(theirs).get(word), word


@needs_references
@pytest.mark.parametrize("name", THEIRS)
def test_the_schema_has_everything_the_reference_has(name: str) -> None:
    ours, theirs = (version(crd)["schema"]["openAPIV3Schema"] for crd in (OURS[name], THEIRS[name]))
    assert list(differences(theirs, ours)) == []


def schemas(schema: Json, path: str = "") -> Iterator[tuple[str, Json]]:
    yield path, schema
    for name, inner in schema.get("properties", {}).items():
        yield from schemas(inner, f"{path}.{name}")
    for word in ("items", "additionalProperties"):
        if isinstance(schema.get(word), dict):
            yield from schemas(schema[word], f"{path}[{word}]")


@pytest.mark.parametrize("name", OURS)
def test_the_schema_is_structural(name: str) -> None:
    for path, schema in schemas(version(OURS[name])["schema"]["openAPIV3Schema"]):
        assert "type" in schema or schema.get("x-kubernetes-int-or-string"), path
        assert not ("properties" in schema and "additionalProperties" in schema), path
        assert set(schema.get("required", ())) <= set(schema.get("properties", {})), path
        if keys := schema.get("x-kubernetes-list-map-keys"):
            assert set(keys) <= set(schema["items"]["properties"]), path
            # A key must be required or have a default, or the API server refuses the definition.
            items = schema["items"]
            assert all(key in items.get("required", ()) or "default" in items["properties"][key] for key in keys), path


@pytest.mark.parametrize("name", OURS)
def test_batch_and_flow_carry_no_descriptions_and_the_others_do(name: str) -> None:
    root = version(OURS[name])["schema"]["openAPIV3Schema"]
    described = [path for path, schema in schemas(root) if "description" in schema]
    if OURS[name]["spec"]["group"] in ("batch.volcano.sh", "flow.volcano.sh"):
        assert described == []
        assert len(json.dumps(OURS[name])) < 262_144
    else:
        assert ".spec" in described or name.startswith("commands")


@needs_references
def test_where_the_reference_is_not_met_the_comparison_says_so() -> None:
    reference = version(THEIRS["queues.scheduling.volcano.sh"])["schema"]["openAPIV3Schema"]
    spoilt = json.loads(json.dumps(reference))
    spoilt["properties"]["spec"]["properties"]["weight"]["maximum"] = 1
    del spoilt["properties"]["status"]["properties"]["state"]
    assert list(differences(reference, spoilt)) == [
        ".spec.weight: maximum is 1, not 65535",
        ".status.state: missing",
    ]


def test_kinds_and_definitions_name_the_same() -> None:
    assert {kind.resource for kind in kinds.OWN} == set(OURS)


def test_files_in_the_chart_are_what_the_models_say(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    chart = Path(__file__).parents[2] / "charts" / "stromboli" / "definitions"
    crds.main([str(tmp_path)])
    written = {Path(line).name: Path(line).read_text() for line in capsys.readouterr().out.splitlines()}
    assert {path.name: path.read_text() for path in chart.glob("*.yaml")} == written, "run `make crds`"
    assert [yaml.safe_load(text) for text in written.values()] == crds.custom_resource_definitions()


def test_the_command_wants_one_directory() -> None:
    with pytest.raises(SystemExit, match="usage: python -m stromboli.api.crds DIR"):
        crds.main([])
