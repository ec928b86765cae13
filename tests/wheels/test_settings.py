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
    jobs = workflow("ci.yml")["jobs"]
    assert set(jobs["test"]["strategy"]["matrix"]["python"]) == stated == {"3.10", "3.11", "3.12", "3.13"}
    parts = jobs["test-all"]["strategy"]["matrix"]["part"]
    assert parts == [f"{i + 1}/{len(parts)}" for i in range(len(parts))]
    assert not [name for name, job in jobs.items() if "needs" in job], "all jobs start at once"


def test_jobs_run_what_the_makefile_offers() -> None:
    """Every job is one of its targets, so that a contributor can repeat it."""
    makefile = ROOT.joinpath("Makefile").read_text(encoding="utf-8")
    steps = [step for job in workflow("ci.yml")["jobs"].values() for step in job["steps"]]
    called = {step["run"].split()[1] for step in steps if "run" in step}
    assert called == {"lint", "test", "test-all", "test-lowest", "coverage", "docs", "fuzz", "wheel"}
    assert [name for name in called if f"\n{name}:" not in makefile] == []


def test_forms_and_settings_are_what_github_reads() -> None:
    yaml = pytest.importorskip("yaml")
    if not WORKFLOWS:
        pytest.skip("an sdist has no workflows")
    for form in ROOT.joinpath(".github", "ISSUE_TEMPLATE").glob("[!c]*.yml"):
        content = yaml.safe_load(form.read_text(encoding="utf-8"))
        fields = [part for part in content["body"] if part["type"] != "markdown"]
        assert content["name"]
        assert len({part["id"] for part in fields}) == len(fields) > 0
        assert all(part["attributes"]["label"] for part in fields)
    updates = yaml.safe_load(ROOT.joinpath(".github", "dependabot.yml").read_text(encoding="utf-8"))["updates"]
    assert {part["package-ecosystem"] for part in updates} == {"github-actions", "pip"}
    for workflow_file in WORKFLOWS:
        for used in re.findall(r"uses: \./(\S+)", workflow_file.read_text(encoding="utf-8")):
            assert ROOT.joinpath(used, "action.yml").is_file()


def test_the_conda_recipe_agrees_with_the_package(project: dict[str, Any]) -> None:
    """Same version, and the same bounds for what the package needs."""
    from semprola._version import __version__

    text = ROOT.joinpath("conda", "recipe.yaml").read_text(encoding="utf-8")
    assert f'version: "{__version__}"' in text
    stated = dict(re.findall(r"^    - ([\w-]+) (>=\S+)$", text, re.MULTILINE))
    extras = project["project"]["optional-dependencies"]["cli"]
    for needed in [*project["project"]["dependencies"], *extras]:
        name, bound = re.match(r"([\w-]+)(\S*)", needed).groups()  # type: ignore[union-attr]
        assert stated[{"torch": "pytorch"}.get(name, name)] == bound


def test_wheels_are_built_for_the_oldest_python_and_tried(project: dict[str, Any]) -> None:
    settings = project["tool"]["cibuildwheel"]
    assert settings["build"][0] == "cp310-*"
    script = re.search(r"\{project\}/(\S+)", settings["test-command"])
    assert script is not None
    assert ROOT.joinpath(script[1]).is_file()
    assert set(settings["test-extras"]) <= set(project["project"]["optional-dependencies"])
    jobs = workflow("wheels.yml")["jobs"]
    assert any("cibuildwheel" in step.get("run", "") for step in jobs["wheels"]["steps"])
    assert {"runs-on": "windows-latest"}.items() <= jobs["windows"].items()
    assert jobs["windows"]["steps"][-1] == {"run": f"python {script[1]}"}


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
