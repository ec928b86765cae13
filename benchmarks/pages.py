"""Tables in a page of the documentation, between two marks."""

from __future__ import annotations

from pathlib import Path


def put_between(page: Path, mark: str, text: str) -> None:
    """Replace the text between ``<!-- mark: begin -->`` and ``<!-- mark: end -->``."""
    old = page.read_text(encoding="utf-8")
    begin, end = f"<!-- {mark}: begin -->", f"<!-- {mark}: end -->"
    start, stop = old.index(begin) + len(begin), old.index(end)
    page.write_text(f"{old[:start]}\n{text}{old[stop:]}", encoding="utf-8")
