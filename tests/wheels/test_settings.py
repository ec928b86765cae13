"""What the public CI is told agrees with what the package says of itself."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
WORKFLOWS = sorted(ROOT.joinpath(".github", "workflows").glob("*.yml"))


@pytest.fixture(scope="module")
def project() -> dict[str, Any]:
    tomllib = pytest.importorskip("tomllib")  # Python 3.11
    found: dict[str, Any] = tomllib.loads(ROOT.joinpath("pyproject.toml").read_text(encoding="utf-8"))
    return found


def workflow(name: str) -> Any:
    yaml = pytest.importorskip("yaml")
    path = ROOT / ".github" / "workflows" / name
    if not path.is_file():
        pytest.skip("an sdist has no workflows")
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def test_every_supported_python_is_tested(project: dict[str, Any]) -> None:
    stated = {c.rpartition(" ")[2] for c in project["project"]["classifiers"] if re.search(r":: 3\.\d+$", c)}
    tests = workflow("ci.yml")["jobs"]["test"]
    assert set(tests["strategy"]["matrix"]["python"]) == stated == {"3.10", "3.11", "3.12", "3.13"}
    assert {"run": "make test"} in tests["steps"]
    everything = workflow("ci.yml")["jobs"]["test-all"]
    parts = everything["strategy"]["matrix"]["part"]
    assert parts == [f"{i + 1}/{len(parts)}" for i in range(len(parts))]
    assert everything["steps"][-1] == {"run": "make test-all PART=${{ matrix.part }}"}
    assert {"run": "make wheel"} in workflow("ci.yml")["jobs"]["wheel"]["steps"]


def test_wheels_are_built_for_the_oldest_python_and_tried(project: dict[str, Any]) -> None:
    settings = project["tool"]["cibuildwheel"]
    assert settings["build"][0] == "cp310-*"
    script = re.search(r"\{project\}/(\S+)", settings["test-command"])
    assert script is not None
    assert ROOT.joinpath(script[1]).is_file()
    assert set(settings["test-extras"]) <= set(project["project"]["optional-dependencies"])
    runs = [step.get("run", "") for step in workflow("wheels.yml")["jobs"]["wheels"]["steps"]]
    assert any("cibuildwheel" in run for run in runs)


@pytest.mark.skipif(shutil.which("sh") is None, reason="needs a shell")
def test_the_script_is_a_shell_script() -> None:
    subprocess.run(["sh", "-n", str(ROOT / "tests" / "wheels" / "build.sh")], check=True)


def test_smoke_fails_outside_of_an_environment_with_the_package(tmp_path: Path) -> None:
    """Bad input: a package that is on the path, but not installed, is not what the smoke test is about."""
    code = "import sys; sys.path.insert(0, sys.argv.pop()); sys.prefix = '/nowhere'; import smoke; smoke.main()"
    folder = Path(__file__).parent
    done = subprocess.run([sys.executable, "-c", code, str(folder)], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode != 0
    assert "not from this environment" in done.stderr
