import re
import subprocess
import sys
from pathlib import Path

GUIDE = Path(__file__).parents[2] / "docs" / "guide" / "writing-a-plugin.md"


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", GUIDE.read_text(), flags=re.DOTALL)


def prepare(folder: Path) -> str:
    module, script = blocks("python")
    (folder / "plugins").mkdir()
    (folder / "plugins" / "quiet_nodes.py").write_text(module)
    (folder / "policy.yaml").write_text(blocks("yaml")[0])
    return script


def test_the_guide_does_what_it_says(tmp_path: Path) -> None:
    script = prepare(tmp_path)
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert done.stdout == "[('drums-0', 'workshop')]\n"


def test_without_the_plugin_the_quiet_node_would_have_been_taken(tmp_path: Path) -> None:
    script = prepare(tmp_path)
    policy = tmp_path / "policy.yaml"
    policy.write_text(re.sub(r"  - name: quiet_nodes\n.*\n", "", policy.read_text()))
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stdout == "[('drums-0', 'library')]\n"


def test_the_check_of_the_guide_accepts_the_policy_and_refuses_a_wrong_argument(tmp_path: Path) -> None:
    prepare(tmp_path)
    command = [sys.executable, "-m", "stromboli.scheduler", "--plugins-dir=plugins", "--check-config=policy.yaml"]
    good = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (good.returncode, good.stderr) == (0, "")
    policy = tmp_path / "policy.yaml"
    policy.write_text(policy.read_text().replace("weight: 5", "weight: heavy"))
    bad = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert bad.returncode == 1
    assert "quiet_nodes" in bad.stderr
    assert "weight" in bad.stderr
