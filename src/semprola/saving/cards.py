"""Model cards: what a saved model predicts, under which rules, how well, and how to use it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from torch import nn

from semprola._version import __version__
from semprola.logic import Formula
from semprola.logic.rules import conjuncts
from semprola.saving.describing import circuits_of

_SHOWN = 100
_TAGS = ("semprola", "neuro-symbolic", "probabilistic-circuits")


def model_card(
    model: Any, name: str = "", *, metadata: dict[str, Any] | None = None, license: str | None = None
) -> str:
    """The model card of a network or an estimator, in the form of Hugging Face's hub.

    Args:
        model: a network, or a fitted `SPLClassifier`.
        name: what the model is called; on the hub "owner/name".
        metadata: what was saved with the model: the inputs, rules and scores of `semprola train` are shown.
        license: the model's licence, as the hub abbreviates it.

    Example:
        >>> import semprola as sp
        >>> print(model_card(sp.SPL(4, "cat -> animal"), "me/pets", license="apache-2.0").partition("Every")[0].strip())
        ---
        library_name: semprola
        license: apache-2.0
        tags:
        - semprola
        - neuro-symbolic
        - probabilistic-circuits
        ---
        <BLANKLINE>
        # pets
    """
    network = model if isinstance(model, nn.Module) else model.network_
    known = metadata or {}
    table: dict[str, Any] = known["table"] if isinstance(known.get("table"), dict) else {}
    sections = [
        _front(license, is_table=bool(table)),
        f"# {name.rpartition('/')[2] or type(model).__name__}",
        "Every prediction of this model obeys the rules below: other combinations of labels have probability 0. "
        f"It was saved by semprola {__version__}.",
        "## Rules\n\n" + _rules(network, table.get("rules", [])),
        "## Size\n\n" + _size(network),
        "## Use\n\n" + _use(model, name, known),
    ]
    if table:
        sections.append("## Inputs\n\n" + _inputs(table.get("features", [])))
    if isinstance(known.get("figures"), dict) and known["figures"]:
        sections.append("## Scores on held-out rows\n\n" + _scores(known["figures"]))
    sections.append(
        "## Files\n\nThe weights are safetensors, the architecture is JSON, and the rules are compiled circuits. There "
        "is no pickle and no code in this repository, and files that do not fit together are refused."
    )
    return "\n\n".join(sections) + "\n"


def _front(license: str | None, *, is_table: bool) -> str:
    lines = ["---", "library_name: semprola"]
    if license is not None:
        lines.append(f"license: {license}")
    if is_table:
        lines.append("pipeline_tag: tabular-classification")
    return "\n".join([*lines, "tags:", *(f"- {tag}" for tag in _TAGS), "---"])


def _rules(network: nn.Module, told: Iterable[str]) -> str:
    """The rules as text, or where they are if only the circuit is known."""
    rules = [str(rule) for rule in told] or [str(rule) for rule in islice(_sources(network), _SHOWN + 1)]
    if not rules:
        return "The rules are kept as a compiled circuit only."
    more = [] if len(rules) <= _SHOWN else [f"# and {len(rules) - _SHOWN:,} more" if told else "# and more"]
    text = "\n".join([*rules[:_SHOWN], *more])
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
    return f"{fence}text\n{text}\n{fence}"


def _sources(network: nn.Module) -> Iterator[Formula]:
    for circuit in circuits_of(network):
        if isinstance(circuit.source, Formula):
            yield from conjuncts(circuit.source)


def _size(network: nn.Module) -> str:
    lines = [f"- {sum(p.numel() for p in network.parameters()):,} parameters"]
    for circuit in circuits_of(network):
        count = circuit.model_count()
        states = f"{count:,}" if count < 10**15 else f"more than 10^{len(str(count)) - 1}"
        names = ", ".join(_code(label) for label in circuit.labels[:_SHOWN])
        lines.append(f"- {circuit.num_labels:,} labels: {names}{', …' if circuit.num_labels > _SHOWN else ''}")
        lines.append(f"- {states} allowed states, in a circuit of {circuit.num_edges:,} edges")
    return "\n".join(lines)


def _use(model: Any, name: str, known: dict[str, Any]) -> str:
    own = known.get("pretrained")
    place = name or "folder"
    lines = ["import semprola as sp", ""]
    if isinstance(own, dict):
        lines = [f'model = {own["class"]}.from_pretrained("{place}")  # the class is in your own code']
    else:
        lines.append(f'model = sp.saving.from_pretrained("{place}")')
    if isinstance(model, nn.Module):
        lines += ["p = model(x)", "p.mode, p.mean  # the most probable states, the probabilities of the labels"]
    else:
        lines += ["model.predict(X), model.predict_proba(X)"]
    return "```python\n" + "\n".join(lines) + "\n```"


def _inputs(features: Iterable[Any]) -> str:
    lines = []
    for name, categories in features:
        kind = "a number" if categories is None else f"one of {', '.join(_code(c) for c in categories[:_SHOWN])}"
        lines.append(f"- {_code(name)}: {kind}")
    return "\n".join(lines)


def _scores(figures: dict[str, Any]) -> str:
    rows = [f"| {name} | {'not known' if value is None else value} |" for name, value in figures.items()]
    return "\n".join(["| score (percent, except counts) | value |", "|---|---:|", *rows])


def _code(name: object) -> str:
    """A name as code, however many backticks it has."""
    text = str(name)
    fence = "`" * (1 + max(map(len, re.findall("`+", text)), default=0))
    gap = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{gap}{text}{gap}{fence}"
