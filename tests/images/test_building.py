"""Arguments, failures of tools, and the Dockerfile beside the builder."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
import yaml
from images.archive import CONFIG
from images.debian import CODENAME
from images.running import run

from images import ImageError, build, verification

PROJECT = build.PROJECT
DOCKERFILE = (PROJECT / "Dockerfile").read_text()


def test_the_default_name_is_the_chart_s() -> None:
    values = yaml.safe_load((PROJECT / "charts/stromboli/values.yaml").read_text())["basic"]
    chart = yaml.safe_load((PROJECT / "charts/stromboli/Chart.yaml").read_text())
    options = build.parse(["--output", "x"], {})
    for component in ("admission", "controller", "scheduler"):
        image = f"{values['image_registry']}/{values[f'{component}_image_name']}:{chart['appVersion']}"
        assert options.reference == image


def test_time_of_entries_comes_from_the_environment() -> None:
    assert build.parse(["--root", "x"], {}).epoch == 0
    assert build.parse(["--root", "x"], {"SOURCE_DATE_EPOCH": "1700000000"}).epoch == 1_700_000_000


def test_a_time_that_is_none_is_one_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "yesterday")
    assert build.main(["--output", "x"]) == 1
    assert capsys.readouterr().err == (
        "images.build: SOURCE_DATE_EPOCH is 'yesterday'; set it to seconds since 1970, or unset it\n"
    )


def test_nothing_asked_for_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        build.parse([], {})
    assert "one of --output and --root is needed" in capsys.readouterr().err


def test_a_root_that_exists_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert build.main(["--root", str(tmp_path)]) == 1
    assert "exists already; name a new directory" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_an_output_that_cannot_be_made_is_told_before_the_long_work(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    assert build.main(["--output", str(tmp_path / "file/x")]) == 1
    said = capsys.readouterr()
    assert (said.out, said.err.count("\n")) == ("", 1)
    assert "file/x cannot be made (Not a directory); name another directory" in said.err


FAILURES = {
    "a missing tool": (["no-such-tool"], "it failed: no-such-tool is not there"),
    "what a tool said": ([sys.executable, "-c", "import sys; sys.exit('no space')"], "it failed: no space"),
    "a tool that said nothing": ([sys.executable, "-c", "raise SystemExit(3)"], "it failed: exit code 3"),
    "a tool that does not end": ([sys.executable, "-c", "input_ = open(0).read(); import time; time.sleep(60)"], "0 s"),
}


@pytest.mark.parametrize(("command", "want"), FAILURES.values(), ids=FAILURES)
def test_failing_tools_are_told_in_one_line(command: list[str], want: str) -> None:
    with pytest.raises(ImageError, match=re.escape(want)) as raised:
        run(command, failed="it failed", seconds=0.3 if want == "0 s" else 30)
    assert "\n" not in str(raised.value)


def test_an_image_that_grew_too_big_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").write_bytes(b"12345")
    (tmp_path / "b").symlink_to("a")
    monkeypatch.setattr(verification, "LIMIT", 5)
    with pytest.raises(ImageError, match="holds 5 bytes; the limit is 5"):
        verification.verify(tmp_path, "1.0")


def test_the_dockerfile_configures_what_the_archive_configures() -> None:
    def instruction(name: str) -> str:
        return str(re.findall(rf"^{name} (.*)$", DOCKERFILE, re.MULTILINE)[-1])

    assert instruction("USER") == CONFIG["User"]
    assert instruction("ENV").split() == CONFIG["Env"]
    assert instruction("WORKDIR") == CONFIG["WorkingDir"]
    assert yaml.safe_load(instruction("CMD")) == CONFIG["Cmd"]
    assert f"FROM debian:{CODENAME}-slim AS build" in DOCKERFILE


def test_docker_is_given_what_the_dockerfile_copies() -> None:
    given = {line[1:] for line in (PROJECT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    copied = {
        name for line in re.findall(r"^COPY (?!--from)(.*) \S+$", DOCKERFILE, re.MULTILINE) for name in line.split()
    }
    assert given == copied
    assert all((PROJECT / name).exists() for name in copied)


def test_the_workflow_runs_targets_that_exist() -> None:
    workflow = (PROJECT / ".github/workflows/ci.yml").read_text()
    targets = set(re.findall(r"run: make (\S+)", workflow))
    assert targets >= {"lint", "test", "e2e"}
    makefile = (PROJECT / "Makefile").read_text()
    assert all(re.search(rf"^{target}:", makefile, re.MULTILINE) for target in targets)
