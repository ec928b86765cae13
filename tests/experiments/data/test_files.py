"""Published files: found, checked, fetched, or refused in one line."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from experiments.data.files import PublishedFile, find_file
from semprola.errors import FormatError, SemprolaError


@pytest.fixture
def published(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PublishedFile:
    """A file that is published in a folder of its own, and an empty cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("SEMPROLA_DATA", raising=False)
    source = tmp_path / "source" / "rows.txt"
    source.parent.mkdir()
    source.write_bytes(b"rows")
    return PublishedFile("set/rows.txt", source.as_uri(), hashlib.sha256(b"rows").hexdigest())


def test_found_in_the_data_folder(published: PublishedFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for path in ("first/set/rows.txt", "second/rows.txt"):
        (tmp_path / path).parent.mkdir(parents=True)
        (tmp_path / path).write_bytes(b"rows")
    assert find_file(published, tmp_path / "first", download=False) == tmp_path / "first/set/rows.txt"
    monkeypatch.setenv("SEMPROLA_DATA", str(tmp_path / "second"))
    assert find_file(published, download=False) == tmp_path / "second/rows.txt"


def test_downloaded_once(published: PublishedFile, tmp_path: Path) -> None:
    path = find_file(published)
    assert path.read_bytes() == b"rows"
    (tmp_path / "source" / "rows.txt").unlink()
    assert find_file(published) == path
    assert [entry.name for entry in path.parent.iterdir()] == ["rows.txt"]


def test_another_content_is_refused(published: PublishedFile, tmp_path: Path) -> None:
    (tmp_path / "rows.txt").write_bytes(b"other")
    with pytest.raises(FormatError, match=r"rows.txt: not the published file \(sha256 "):
        find_file(published, tmp_path)
    (tmp_path / "source" / "rows.txt").write_bytes(b"changed")
    with pytest.raises(FormatError, match="is not the file that was published"):
        find_file(published)
    assert list((tmp_path / "cache").rglob("*.*")) == []


def test_no_network(published: PublishedFile, tmp_path: Path) -> None:
    (tmp_path / "source" / "rows.txt").unlink()
    with pytest.raises(SemprolaError, match=r"cannot download set/rows.txt .*: fetch file:.* by hand") as raised:
        find_file(published)
    assert "\n" not in str(raised.value)
    with pytest.raises(SemprolaError, match="set SEMPROLA_DATA or --data"):
        find_file(published, download=False)
