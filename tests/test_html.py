"""Reports look like the documentation site, and load nothing."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from semprola._html import STYLE, html_page


def test_text_is_escaped_and_nothing_is_loaded() -> None:
    text = html_page("<b>a & b</b>", "<p>one</p>", "<p>two</p>")
    assert text.count("&lt;b&gt;a &amp; b&lt;/b&gt;") == 2
    assert "<p>one</p>\n<p>two</p>" in text
    assert not re.search(r"(src|href)=|@import|url\(", text)


def test_colours_and_fonts_are_those_of_the_site() -> None:
    furo = pytest.importorskip("furo")
    css = (Path(furo.__file__).parent / "theme" / "furo" / "static" / "styles" / "furo.css").read_text(encoding="utf-8")
    dark = re.search(r"body\[data-theme=dark\]\{([^}]*)\}", css)
    assert dark is not None
    theirs = dict(re.findall(r"--color-([\w-]+):(#\w+)", dark[1]))
    ours = dict(re.findall(r"--(\w+): (#\w+)", STYLE[STYLE.index("prefers-color-scheme: dark") :]))
    for name, part in (
        ("ink", "foreground-primary"),
        ("quiet", "foreground-secondary"),
        ("ground", "background-primary"),
        ("code", "background-secondary"),
        ("line", "background-border"),
        ("own", "brand-content"),
    ):
        assert ours[name] == theirs[part], name
    assert "-apple-system,BlinkMacSystemFont,Segoe UI,Helvetica,Arial,sans-serif" in css
    assert '-apple-system, BlinkMacSystemFont, "Segoe UI", Helvetica, Arial, sans-serif' in STYLE
