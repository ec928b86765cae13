"""One HTML page in the style of the documentation site: the reports of comparisons and of experiments."""

from __future__ import annotations

import html

STYLE = """
:root {
  color-scheme: light dark;
  --ink: #000000; --quiet: #5a5c63; --ground: #ffffff; --code: #f8f9fb; --line: #e3e5e8; --own: #0a4bff;
  --other: #6b6f76;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ink: #cfd0d0; --quiet: #9ca0a5; --ground: #131416; --code: #1a1c1e; --line: #303335; --own: #5ca5ff;
    --other: #9ca0a5;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0 auto; padding: 1.5rem 1rem 3rem; max-width: 66rem; background: var(--ground); color: var(--ink);
  font: 100%/1.5 -apple-system, BlinkMacSystemFont, "Segoe UI", Helvetica, Arial, sans-serif; overflow-wrap: break-word;
}
h1, h2 { line-height: 1.25; margin: 1.75rem 0 .75rem; }
h1 { font-size: 2.25em; margin-top: .5rem; }
h2 { font-size: 1.75em; }
@media (max-width: 40rem) { h1 { font-size: 1.75em; } h2 { font-size: 1.4em; } }
p, li { max-width: 50rem; }
.wide { overflow-x: auto; margin: 1rem 0; }
table { border-collapse: collapse; font-size: .875rem; font-variant-numeric: tabular-nums; }
th, td { padding: .25rem .5rem; text-align: right; white-space: nowrap; border-bottom: 1px solid var(--line); }
th { background: var(--code); }
th:first-child, td:first-child { text-align: left; }
table.words th, table.words td { text-align: left; white-space: normal; }
td.refused { text-align: left; white-space: normal; color: var(--quiet); min-width: 20rem; }
code, pre {
  font: .8125em/1.5 "SFMono-Regular", Menlo, Consolas, Monaco, "Liberation Mono", monospace; background: var(--code);
  border-radius: .2em;
}
code { padding: .1em .25em; overflow-wrap: anywhere; }
pre { padding: .625rem .875rem; overflow-x: auto; white-space: pre-wrap; overflow-wrap: anywhere; }
details > summary { cursor: pointer; font-weight: 600; }
img { max-width: 100%; border-radius: 6px; }
.plots { display: grid; gap: 1rem; grid-template-columns: repeat(auto-fit, minmax(min(20rem, 100%), 1fr)); }
svg text { font-size: 11px; fill: currentColor; }
svg .title { font-size: 13px; font-weight: 600; }
svg .grid { stroke: var(--line); }
svg .own { stroke: var(--own); fill: var(--own); stroke-width: 2; }
svg .other { stroke: var(--other); fill: var(--other); stroke-width: 2; }
"""
"""Fonts and colours of the site's theme (furo), light and dark as the reader's system asks."""


def html_page(title: str, *parts: str) -> str:
    """A whole page that loads nothing else.

    Args:
        parts: HTML, in order. Put a wide table into ``<div class="wide">``, so that it scrolls on a narrow screen.
    """
    name = html.escape(title)
    head = (
        '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{name}</title><style>{STYLE}</style>"
    )
    body = "\n".join([f"<h1>{name}</h1>", *parts])
    return f'<!doctype html>\n<html lang="en"><head>{head}</head><body>\n{body}\n</body></html>\n'
