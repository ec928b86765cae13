"""The first use of a word of the glossary on a page leads to the glossary, and shows its meaning under the pointer."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from docutils import nodes

PAGE = "glossary"
WITHOUT = re.compile(r"^(index|glossary|design|api.*|record_.*|examples/.*)$")
"""Pages without such links: those that explain words themselves, and lists."""
ALWAYS = ("circuit", "gate", "vtree", "evidence")
"""Words of the first table that are linked, too; the others are explained where they are used."""


def words(path: Path) -> dict[str, str]:
    """The words to link, and their meanings, from the tables of the glossary."""
    found: dict[str, str] = {}
    section = ""
    for line in path.read_text(encoding="utf-8").splitlines():
        section = line[3:] if line.startswith("## ") else section
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if line.startswith("| ") and cells[0] != "word" and (section != "Words of the code" or cells[0] in ALWAYS):
            found[cells[0]] = re.sub(r"`|\[([^]]*)\]\([^)]*\)", r"\1", cells[1].rstrip("| "))
    return {word: meaning for word, meaning in found.items() if len(word) > 1}


def link(app: Any, doctree: nodes.document, page: str) -> None:
    """Link the first use of each word in the paragraphs of a page."""
    if WITHOUT.match(page):
        return
    meanings = words(Path(app.srcdir) / f"{PAGE}.md")
    left = dict(meanings)
    for text in list(doctree.findall(nodes.Text)):
        if not left:
            return
        if _is_prose(text):
            _link_in(text, left, app.builder.get_relative_uri(page, PAGE))


def _is_prose(text: nodes.Text) -> bool:
    """Inside a paragraph or a list, and neither code, nor a heading, nor a link, nor a table."""
    parents = []
    node: Any = text.parent
    while node is not None:
        parents.append(node)
        node = node.parent
    refused = (nodes.literal, nodes.literal_block, nodes.title, nodes.reference, nodes.table, nodes.raw, nodes.caption)
    return not any(isinstance(parent, refused) for parent in parents) and any(
        isinstance(parent, nodes.paragraph) for parent in parents
    )


def _link_in(text: nodes.Text, left: dict[str, str], address: str) -> None:
    """Replace the first use of a word in a text by a link, and go on behind it."""
    pattern = "|".join(re.escape(word) for word in sorted(left, key=len, reverse=True))
    found = re.search(rf"(?<![\w-])({pattern})(?:s|es)?(?![\w-])", text.astext()) if left else None
    if found is None:
        return
    whole = text.astext()
    reference = nodes.reference("", found[0], refuri=address, internal=True, classes=["word"])
    reference["reftitle"] = f"{found[1]}: {left.pop(found[1])}"
    rest = nodes.Text(whole[found.end() :])
    text.parent.replace(text, [nodes.Text(whole[: found.start()]), reference, rest])
    _link_in(rest, left, address)


def setup(app: Any) -> dict[str, bool]:
    """After links between pages are resolved."""
    app.connect("doctree-resolved", link)
    return {"parallel_read_safe": True}
