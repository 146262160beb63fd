from pathlib import Path

import pytest

from stromboli.webhooks.configuration_file import ConfigurationFile

GPU = "resourceGroups: [{resourceGroup: gpu}]\n"


def names(file: ConfigurationFile) -> list[str] | None:
    return None if file.groups is None else [group.name for group in file.groups]


async def test_a_change_is_taken_up(tmp_path: Path) -> None:
    path = tmp_path / "admission.conf"
    path.write_text(GPU)
    file = ConfigurationFile(path)
    assert names(file) is None
    await file.look()
    assert names(file) == ["gpu"]
    path.write_text(GPU.replace("gpu", "cpu"))
    await file.look()
    assert names(file) == ["cpu"]


async def test_an_empty_file_and_one_of_comments_clear_the_groups(tmp_path: Path) -> None:
    path = tmp_path / "admission.conf"
    for text in ("", "# nothing\n", "resourceGroups:\n"):
        path.write_text(GPU)
        file = ConfigurationFile(path)
        await file.look()
        path.write_text(text)
        await file.look()
        assert names(file) == []


@pytest.mark.parametrize("text", ["{{", "resourceGroups: 3", "\x00"])
async def test_a_file_of_no_use_leaves_the_groups_as_they_are(tmp_path: Path, text: str) -> None:
    path = tmp_path / "admission.conf"
    path.write_text(GPU)
    file = ConfigurationFile(path)
    await file.look()
    path.write_text(text)
    await file.look()
    assert names(file) == ["gpu"]
    path.unlink()
    await file.look()
    assert names(file) == ["gpu"]


async def test_a_file_that_comes_late_is_taken_up(tmp_path: Path) -> None:
    # The original never looked again when the file was missing at its start.
    path = tmp_path / "admission.conf"
    file = ConfigurationFile(path)
    await file.look()
    assert names(file) is None
    path.write_text(GPU)
    await file.look()
    assert names(file) == ["gpu"]


async def test_the_same_complaint_is_made_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "admission.conf"
    path.write_text("{{")
    file = ConfigurationFile(path)
    for _ in range(3):
        await file.look()
    assert len(caplog.records) == 1
    assert str(path) in caplog.text
