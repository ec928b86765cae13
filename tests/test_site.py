"""The documentation site builds without a warning, its links lead somewhere, and nothing comes from the network."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
API = {page.stem for page in (ROOT / "docs").glob("api_*.md")}
"""Pages below the one that lists them."""


@pytest.mark.extensive
def test_the_site(tmp_path: Path) -> None:
    """One test, as workers that share the file's tests would each build the site."""
    for module in ("sphinx", "myst_parser", "furo"):
        pytest.importorskip(module)
    source = str(ROOT / "docs")
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html", source, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    pages = {page.name: page.read_text(encoding="utf-8") for page in tmp_path.glob("*.html")}

    for page in (ROOT / "docs").glob("*.md"):
        in_a_menu = f'href="{page.stem}.html"' in pages["index.html"] or page.stem == "index"
        assert in_a_menu, f"{page.name} is in no toctree"
    for name, text in pages.items():
        for link in re.findall(r'(?:href|src)="([^"#?]+)', text):
            if not re.match(r"[a-z]+:|//", link):
                assert (tmp_path / link).exists(), f"{name} links to {link}"
        fetched = re.findall(r'<(?:script|img|link rel="stylesheet")[^>]+(?:src|href)="(?:https?:)?//', text)
        assert not fetched, f"{name} needs the network"

    # programs that read the site find every page, as Markdown
    listed = re.findall(r"\]\((\S+)\.md\)", (tmp_path / "llms.txt").read_text(encoding="utf-8"))
    assert {page.stem for page in (ROOT / "docs").glob("*.md")} - {"index"} <= {*listed} | API
    assert all((tmp_path / f"{name}.md").is_file() for name in listed)

    # a reader who searches for these words finds a heading that has them
    headings = " | ".join(re.findall(r"<h[12]>(.*?)<", "".join(pages.values()))).lower()
    assert [word for word in ("missing labels", "install", "cite", "hierarchy") if word not in headings] == []

    # the reference says what users pass, and leaves out what only torch calls
    reference = "".join(text for name, text in pages.items() if name.startswith("api_"))
    noise = "extra_repr|get_extra_state|set_extra_state|arg_constraints|has_rsample"
    assert re.findall(rf'id="[\w.]+\.(?:{noise})"', reference) == []
    assert "(*args" not in re.sub(r"<[^>]+>", "", pages["api_layers.html"])
