"""`llms.txt`: all pages with a sentence each, and their Markdown beside the HTML, for programs that read the site."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx import addnodes

HEAD = """# semprola

> A last layer for PyTorch whose predictions always obey logical rules: compile the rules to a circuit, train by exact
> maximum likelihood, query the distribution exactly.

- Use `import semprola as sp`. Rules: `sp.parse("cat -> animal")`, Python (`sp.Bool("cat") >> sp.Bool("animal")`), or
  families such as `sp.constraints.hierarchy(pairs)`. `K.labels` is the order of the columns of y.
- A trained network: `p = sp.constrain(logits, K)`. A layer: `sp.ProductSPL(features, K)` or `sp.SPL(features, K)` as
  the last module.
- Both give a `torch.distributions.Distribution`: `p.log_prob(y)`, `p.mode`, `p.mean`, `p.sample()`, `p.top_k(3)`,
  `p.entropy()`, `p.condition({"cat": 1})`, `p.log_prob_of("cat | dog")`. Loss: `-p.log_prob(y).mean()`.
- An impossible state has log-probability -inf. Missing labels are NaN in `p.log_marginal(y)`.
- Errors are subclasses of `sp.SemprolaError`; `sp.compile(K, timeout=60)` limits compilation.
"""


def write(app: Any, failed: Exception | None) -> None:
    """When the site is built: the list, and a copy of each page."""
    if failed is not None or app.builder.name != "html":
        return
    out = Path(app.outdir)
    lines = [HEAD]
    for caption, pages in sections(app.env.get_doctree("index")):
        lines += [f"## {caption}", ""]
        for page in pages:
            title = app.env.titles[page].astext()
            said = first_sentence(app.env.get_doctree(page))
            lines.append(f"- [{title}]({page}.md)" + (f": {said}" if said else ""))
        lines.append("")
    out.joinpath("llms.txt").write_text("\n".join(lines), encoding="utf-8")
    for page in app.env.found_docs:
        target = out / f"{page}.md"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(Path(app.env.doc2path(page)).read_text(encoding="utf-8"), encoding="utf-8")


def sections(index: nodes.document) -> list[tuple[str, list[str]]]:
    """The captions of the menu, and the pages below each."""
    return [(tree["caption"], tree["includefiles"]) for tree in index.findall(addnodes.toctree)]


def first_sentence(page: nodes.document) -> str:
    """What a page says first."""
    for paragraph in page.findall(nodes.paragraph):
        text = " ".join(paragraph.astext().split())
        if text:
            return re.split(r"(?<=[.!?])\s", text, maxsplit=1)[0].rstrip(":")
    return ""


def setup(app: Any) -> dict[str, bool]:
    """After the pages are written."""
    app.connect("build-finished", write)
    return {"parallel_read_safe": True}
