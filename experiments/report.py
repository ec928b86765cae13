"""Reports: Markdown, one self-contained HTML file, and the tables of docs/record_paths.md.

``python -m experiments.report results docs/record_paths.md`` rewrites the text between the two markers.
"""

from __future__ import annotations

import base64
import html
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from experiments import pictures
from experiments.methods import METHODS, TITLES
from experiments.provenance import read_json
from experiments.settings import EXPERIMENTS
from experiments.tables import described, html_table, markdown_table, search_lines, spread, summary
from semprola._files import write_atomically
from semprola._html import html_page
from semprola.errors import FormatError, SemprolaError

_HEAD_OF_SEARCH = (
    "Exact / Hamming / consistent on validation rows, and the negative log-likelihood. The chosen candidate is bold."
)

_BOLD, _CODE = re.compile(r"\*\*(.+?)\*\*"), re.compile(r"`(.+?)`")

_TIE = 1e-9

BEGIN, END = "<!-- results: begin -->", "<!-- results: end -->"


def markdown_report(content: Mapping[str, Any]) -> str:
    """A results file as a section in Markdown: heading, table, notes, command.

    Args:
        content: of a file that `python -m experiments` writes: "results", "title", "command", "search".
    """
    results = content["results"]
    lines = [f"### {_title(content)}", "", markdown_table(_rows(results)), "", _network(results), "", "Settings:", ""]
    lines += [*(f"- {line}" for line in _settings(results)), ""]
    lines += [text for note in _notes(results) for text in (note, "")]
    tried = search_lines(content.get("search", ()))
    if tried:
        lines += ["<details><summary>What the search saw on validation rows</summary>", "", _HEAD_OF_SEARCH]
        lines += ["", *tried, "", "</details>", ""]
    return "\n".join([*lines, f"`{content['command']}`", ""])


def overview(contents: Sequence[Mapping[str, Any]]) -> str:
    """Exact match of every method in several results files, one line of Markdown per file; and both layers' decoders.

    Args:
        contents: of the files, as for `markdown_report`.
    """
    lines = ["| exact match, mean ± sd over seeds | " + " | ".join(TITLES[method] for method in METHODS) + " |"]
    lines.append("|---|" + "---:|" * len(METHODS))
    for content in contents:
        seen = [[test["exact"] for test in _of(content["results"], method)] for method in METHODS]
        lines.append(
            f"| {_title(content)} | " + " | ".join(spread(values) if values else "–" for values in seen) + " |"
        )
    layers = [r for content in contents for r in content["results"] if r["method"] in ("spl", "product-spl")]
    if layers:
        lines += ["", f"Both layers, all tables below. {_behind(layers)}."]
    return "\n".join(lines) + "\n"


def html_report(content: Mapping[str, Any]) -> str:
    """A results file as one HTML page with embedded pictures (none if matplotlib is not installed)."""
    results = content["results"]
    parts = [f"<p><strong>{_inline(_found(results))}</strong></p>"]
    parts.append(f'<div class="wide">{html_table(_rows(results))}</div>')
    parts += [f"<p>{_inline(note)}</p>" for note in (_network(results), *_notes(results))]
    made = content.get("provenance", {}).get("commit", "")
    head = f"<summary>Settings</summary><p><code>{html.escape(content['command'])}</code> {html.escape(made)}</p>"
    parts.append(f"<details>{head}{_list(_settings(results))}</details>")
    tried = [line.removeprefix("- ") for line in search_lines(content.get("search", ()))]
    if tried:
        summary_line = "<summary>What the search saw on validation rows</summary>"
        parts.append(f"<details>{summary_line}<p>{_HEAD_OF_SEARCH}</p>{_list(tried)}</details>")
    try:
        parts += [_image(name, figure) for name, figure in _figures(results)]
    except SemprolaError as error:
        parts.append(f"<p>{html.escape(str(error))}</p>")
    return html_page(_title(content), *parts)


def _found(results: Sequence[Mapping[str, Any]]) -> str:
    """Which method has most rows right, and which predictions obey."""
    tests = {method: found for method in METHODS if (found := _of(results, method))}
    exact, obey = (
        {method: fmean(test[name] for test in found) for method, found in tests.items()}
        for name in ("exact", "consistent")
    )
    best, worst = max(exact, key=lambda name: exact[name]), min(obey, key=lambda name: obey[name])
    said = f"{TITLES[best]} has the most rows right: {exact[best]:.1f} %"
    if "fil" in exact and best != "fil":
        said += f", against {exact['fil']:.1f} % with independent labels (FIL)"
    if obey[worst] < 100:
        return f"{said}. {TITLES[worst]} breaks the rules in {100 - obey[worst]:.1f} % of its predictions."
    return f"{said}."


def write_report(content: Mapping[str, Any], stem: str | Path) -> list[Path]:
    """Write ``stem.md`` and ``stem.html``; returns their paths."""
    made = []
    for suffix, text in ((".md", markdown_report(content)), (".html", html_report(content))):
        path = Path(f"{stem}{suffix}")
        data = text.encode()
        write_atomically(path, data)
        made.append(path)
    return made


def update_page(folder: str | Path, page: str | Path) -> int:
    """Rewrite the part of a Markdown page between the markers, from the results files of a folder.

    Results files are the JSON files whose names begin with an experiment's name; other files are ignored.

    Returns:
        The number of files used.

    Raises:
        FormatError: if a file is not a results file, or the page lacks the markers.
    """
    files = sorted(path for name in EXPERIMENTS for path in Path(folder).glob(f"{name}-*.json"))
    contents = []
    for path in files:
        content = read_json(path)
        if not {"title", "command", "results"} <= set(content):
            raise FormatError(f"{path}: not a results file: it lacks title, command or results")
        contents.append(content)
    sections = [overview(contents), *map(markdown_report, contents)]
    text = Path(page).read_text(encoding="utf-8")
    if text.count(BEGIN) != 1 or text.count(END) != 1:
        raise FormatError(f"{page}: expected one line {BEGIN!r} and one {END!r}")
    head, tail = text[: text.index(BEGIN) + len(BEGIN)], text[text.index(END) :]
    data = (head + "\n\n" + "\n".join(sections) + "\n" + tail).encode()
    write_atomically(page, data)
    return len(files)


_NETWORK = re.compile("network of the paper(?!')")
_NETWORKS = {"simple-path": "network of the released code", "preference": "network between the text's and the code's"}


def _title(content: Mapping[str, Any]) -> str:
    """The title of a file, with the exact name of the network that its run calls the paper's."""
    network = _NETWORKS[content["results"][0]["experiment"]]
    return _NETWORK.sub(network, content["title"])


def _rows(results: Sequence[Mapping[str, Any]]) -> Any:
    first = results[0]
    return summary(results, first["experiment"], paper=first["split"] == "published")


def _network(results: Sequence[Mapping[str, Any]]) -> str:
    model, training = results[0]["model"], results[0]["training"]
    widths = " → ".join(str(width) for width in model["hidden"])
    linear = f", then {model['features']} linear" if model.get("features") else ""
    size = "all rows at once" if training["batch_size"] is None else f"batches of {training['batch_size']}"
    seconds = sum(result["history"]["seconds"] for result in results)
    units = model["activation"] + linear + (", scaled start" if model.get("start") == "scaled" else "")
    data = results[0]["data"]
    return (
        f"Data: {data}. Network: {widths}, {units}. Training: Adam, {size}, {seconds:,.0f} s in total. "
        'The prediction is the mode; “its decoder” is `decode("hamming")`.'
    )


def _notes(results: Sequence[Mapping[str, Any]]) -> list[str]:
    """What the table has no column for: the greedy decoder, and the decoder for the Hamming score, run by run."""
    notes = []
    greedy = [test["greedy_decoder"] for test in _of(results, "spl") if "greedy_decoder" in test]
    if greedy:
        figures = " / ".join(spread([seen[name] for seen in greedy]) for name in ("exact", "hamming", "consistent"))
        notes.append(f"SPL decoded greedily, as in the released code: {figures}.")
    chosen = [r for r in results if _gain(r["valid"]) > _TIE and _gain(r["test"]) < -_TIE]
    notes.append(f"{_behind(results)}. If used only where it leads on validation rows: in {len(chosen)}.")
    return notes


def _behind(results: Sequence[Mapping[str, Any]]) -> str:
    """In how many runs the decoder for the Hamming score is behind the mode on test rows, and by how much."""
    behind = [-_gain(result["test"]) for result in results if _gain(result["test"]) < -_TIE]
    loss = f", by at most {max(behind):.2f} points" if behind else ""
    errors = [error for r in results if (error := _in_errors(r["test"]["hamming_decoder"])) is not None]
    if min(errors, default=0.0) < 0:
        known = "" if len(errors) == len(results) else f", in the {len(errors)} runs that recorded them"
        loss += f" ({max(-error for error in errors):.1f} standard errors{known})"
    return f'By Hamming score, `decode("hamming")` is behind the mode in {len(behind)} of {len(results)} runs{loss}'


def _gain(figures: Mapping[str, Any]) -> float:
    gain: float = figures["hamming_decoder"]["hamming"] - figures["hamming"]
    return gain


def _in_errors(decoder: Mapping[str, float]) -> float | None:
    """How far the decoder is ahead of the mode, in standard errors of the difference; None if not recorded."""
    if "gain" not in decoder:
        return None
    return decoder["gain"] / decoder["gain_error"] if decoder["gain_error"] > 0 else 0.0


def _of(results: Sequence[Mapping[str, Any]], method: str) -> list[Mapping[str, Any]]:
    return [result["test"] for result in results if result["method"] == method]


def _settings(results: Sequence[Mapping[str, Any]]) -> list[str]:
    """One line per method."""
    return [_settings_of(results, method) for method in METHODS if _of(results, method)]


def _settings_of(results: Sequence[Mapping[str, Any]], method: str) -> str:
    """The settings that matter for a method, for readers."""
    result = next(result for result in results if result["method"] == method)
    model, training = result["model"], result["training"]
    names = {"spl": ("replicas", "units", "gate"), "product-spl": ("replicas", "gate")}.get(method, ())
    if method in ("semantic-loss", "nesy-entropy"):
        names = ("semantic_weight", "entropy_weight")[: 1 + (method == "nesy-entropy")]
    chosen = {name: model[name] for name in (*names, "dropout")} | {"lr": training["lr"]}
    for name in ("weight_decay", "penalty_from"):
        if training.get(name):
            chosen[name] = training[name]
    return f"{TITLES[method]}: {described(chosen)}, up to {training['steps']:,} steps"


def _figures(results: Sequence[Mapping[str, Any]]) -> list[tuple[str, Any]]:
    figures = [
        ("Learning curves", pictures.learning_curves(results)),
        ("Reliability of p(mode)", pictures.reliability_diagram(results)),
    ]
    if results[0]["experiment"] == "simple-path":
        figures.append(("Examples", pictures.gallery_of(results)))
    return figures


def _list(lines: Sequence[str]) -> str:
    return "<ul>" + "".join(f"<li>{_inline(line)}</li>" for line in lines) + "</ul>"


def _inline(text: str) -> str:
    """Bold and code of a line of Markdown, as HTML."""
    return _CODE.sub(r"<code>\1</code>", _BOLD.sub(r"<b>\1</b>", html.escape(text)))


def _image(name: str, figure: Any) -> str:
    data = base64.b64encode(pictures.png(figure)).decode()
    return f'<h2>{html.escape(name)}</h2><img alt="{html.escape(name)}" src="data:image/png;base64,{data}">'


def _main(arguments: Sequence[str]) -> int:
    if len(arguments) != 2:
        print("usage: python -m experiments.report RESULTS_FOLDER PAGE.md", file=sys.stderr)
        return 2
    try:
        print(f"{arguments[1]}: tables of {update_page(*arguments)} results files")
    except (SemprolaError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    raise SystemExit(_main(sys.argv[1:]))
