"""Where figures come from, and files that are whole or not there."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import IO

import pytest

from experiments.provenance import provenance, read_json, source_commit, write_json
from semprola._files import write_atomically
from semprola.errors import FormatError


def test_json_comes_back(tmp_path: Path) -> None:
    content = {
        "title": "a “title”",
        "results": [{"seed": 0, "values": [1.5, 2]}, {"seed": 1, "values": []}],
        "none": [],
    }
    write_json(tmp_path / "new" / "x.json", content)
    assert read_json(tmp_path / "new" / "x.json") == content
    assert len((tmp_path / "new" / "x.json").read_text().splitlines()) == 8


def test_a_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_text("old")

    def fail(out: IO[bytes]) -> None:
        out.write(b"half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_atomically(path, fail)
    assert path.read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["x"]


@pytest.mark.parametrize("text", ["", "{", "[1]", "\x00"])
def test_what_is_not_a_results_file(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(text)
    with pytest.raises(FormatError, match=r"x\.json: "):
        read_json(path)
    with pytest.raises(FormatError, match="cannot be read as JSON"):
        read_json(tmp_path / "none.json")


def test_folders_of_the_machine_are_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", [str(tmp_path / "tool"), "--data", str(tmp_path / "rows"), "--seeds", "3"])
    found = provenance()
    assert str(tmp_path) not in json.dumps(found)
    assert found["command"].endswith("--data rows --seeds 3")
    assert found["packages"]["torch"]
    assert provenance("my command")["command"] == "my command"


def test_results_do_not_make_a_commit_dirty(tmp_path: Path) -> None:
    def git(*words: str) -> None:
        settings = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
        subprocess.run(["git", *settings, *words], cwd=tmp_path, check=True, capture_output=True)

    assert source_commit(tmp_path) is None
    for name in ("results", "experiments"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text("old")
    git("init")
    git("add", ".")
    git("commit", "-m", "first")
    commit = source_commit(tmp_path / "experiments")
    assert commit is not None
    assert len(commit) == 12
    (tmp_path / "results" / "file").write_text("new")
    assert source_commit(tmp_path / "experiments") == commit
    (tmp_path / "experiments" / "file").write_text("new")
    assert source_commit(tmp_path / "experiments") == f"{commit}-dirty"


def test_a_commit_made_while_a_process_runs_is_not_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    before = provenance("x")["commit"]
    monkeypatch.setattr("experiments.provenance.source_commit", lambda folder: "a later commit")
    assert provenance("x")["commit"] == before
