"""The documentation site builds without a warning, its links lead somewhere, and nothing comes from the network."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("sphinx")
    pytest.importorskip("myst_parser")
    pytest.importorskip("furo")
    out = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html", str(ROOT / "docs"), str(out)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return out


def test_every_page_is_in_a_menu(site: Path) -> None:
    index = (site / "index.html").read_text(encoding="utf-8")
    for page in (ROOT / "docs").glob("*.md"):
        assert f'href="{page.stem}.html"' in index or page.stem == "index", f"{page.name} is in no toctree"


def test_links_within_the_site_lead_somewhere(site: Path) -> None:
    for page in site.glob("*.html"):
        for link in re.findall(r'(?:href|src)="([^"#?]+)', page.read_text(encoding="utf-8")):
            if not re.match(r"[a-z]+:|//", link):
                assert (page.parent / link).exists(), f"{page.name} links to {link}"


def test_nothing_is_fetched_from_the_network(site: Path) -> None:
    for page in site.glob("*.html"):
        text = page.read_text(encoding="utf-8")
        assert not re.findall(r'<(?:script|img|link rel="stylesheet")[^>]+(?:src|href)="(?:https?:)?//', text), (
            page.name
        )
