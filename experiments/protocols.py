"""What each row of the paper's tables and of ours was made with: network, sizes, steps, decoder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from experiments.hmlc import hierarchy_only
from experiments.hmlc.collecting import EXACT_MODE_PROVEN, campaign_in
from experiments.like_for_like import PREFERENCES, TASKS, exact_in
from experiments.provenance import read_json
from experiments.tables import spread

_HEAD = ("row", "network and start", "layers", "training", "prediction", "`SPL` decoded greedily, exact match")
_PAPER = {
    "simple paths": (
        "sigmoid layers of 50: five in the text, six in the code",
        "m, k ∈ {2, 4, 8}; gate of two layers in the code",
        "at most 2,000 iterations in the text, 20,000 in the script",
    ),
    "preferences": (
        "text: three sigmoid layers of 50; code: three of 25, and 50 linear",
        "m, k ∈ {2, 4, 8}",
        "at most 2,000 iterations",
    ),
    "Warcraft": ("ResNet-18", "two circuits, m ∈ {2, 4, 8}", "300 epochs in the code"),
    "hierarchies": (
        "ReLU layers, as in C-HMCNN",
        "m, k and layers of the gate ∈ {2, 4, 8}",
        "batch 128, patience 20; HMCNN: no batch named, 4 in C-HMCNN's released code",
    ),
}
"""Network, sizes of the layers and training, as the paper's text and the released code have them."""
_GREEDY = "approximate; in the code, the best branch of each sum"
_PAPER_DECODER = {"Warcraft": "approximate"}


def protocols(results: Path) -> str:
    """One row for the paper and one for each of our rows."""
    rows: list[Sequence[str]] = [_HEAD, tuple("---" for _ in _HEAD), _paper("simple paths")]
    for title, file in TASKS.values():
        rows.append(_ours(results, f"ours, {title}", file))
    rows.append(_paper("preferences"))
    for net, file in PREFERENCES.items():
        rows.append(_ours(results, f"ours, network {net}", file, f"{file}-by-likelihood"))
    rows += [_paper("hierarchies"), _hierarchies(results / "hmlc"), _paper("Warcraft"), _maps(results / "warcraft")]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def _paper(name: str) -> Sequence[str]:
    return (f"**{name}**, paper", *_PAPER[name], _PAPER_DECODER.get(name, _GREEDY), "as published")


def _ours(results: Path, title: str, *files: str) -> Sequence[str]:
    runs = [
        run
        for file in files
        if (results / f"{file}.json").is_file()
        for run in read_json(results / f"{file}.json")["results"]
    ]
    if not runs:
        return (title, "not run yet", "", "", "", "")
    model, training = runs[0]["model"], runs[0]["training"]
    widths = ", ".join(map(str, model["hidden"])) + (f", linear {model['features']}" if model.get("features") else "")
    first = {run["method"]: run for run in reversed(runs)}
    layers = "; ".join(_layer(name, first[key]) for key, name in _LAYERS.items() if key in first)
    steps = max(run["training"]["steps"] for run in runs)
    rows = "all rows at once" if training["batch_size"] is None else f"batches of {training['batch_size']}"
    greedy = [value for file in files for value in exact_in(results, file, decoder="greedy_decoder").get("spl", [])]
    proven = min(run["test"]["mode_proven"] for run in runs)
    return (
        title,
        f"{model['activation']} layers of {widths}; PyTorch's start",
        layers or "not run",
        f"Adam, {rows}, at most {steps:,} steps",
        _mode(proven),
        f"{spread(greedy)} %" if greedy else "not run",
    )


_LAYERS = {"spl": "`SPL`", "product-spl": "`ProductSPL`"}


def _layer(name: str, run: Mapping[str, Any]) -> str:
    model, decay = run["model"], run["training"].get("weight_decay")
    gate = f"gate of {' → '.join(map(str, model['gate']))}" if model["gate"] else "linear gate"
    units = f", k = {model['units']}" if name == "`SPL`" else ""
    return f"{name}: m = {model['replicas']}{units}, {gate}{f', weight decay {decay:g}' if decay else ''}"


def _mode(proven: float) -> str:
    return "the mode, exact" if proven >= 100 else f"the mode, proven exact for {proven:.1f} % of the rows"


def _maps(folder: Path) -> Sequence[str]:
    runs = [read_json(path) for path in sorted(folder.glob("resnet18-*seed*.json"))]
    components = max(run["model"]["components"] for run in runs)
    epochs = sorted({run["training"]["epochs"] for run in runs})
    return (
        "ours",
        "ResNet-18, not pre-trained; PyTorch's start",
        f"two circuits, m = {components}",
        f"AdamW, batches of {runs[0]['training']['batch_size']}, at most {epochs[-1]} epochs; other maps",
        "the best of the components' modes",
        "no such decoder",
    )


def _hierarchies(folder: Path) -> Sequence[str]:
    campaign = campaign_in(folder)
    runs = {name: campaign.variant(name, "spl", hierarchy_only.VARIANT) for name in hierarchy_only.complete(campaign)}
    if not runs:
        return ("ours, hierarchy only", "not run yet", "", "", "", "")
    all_runs = [run for found in runs.values() for run in found]
    sizes = sorted({run["settings"]["components"] for run in all_runs})
    gate = "linear gate" if all(not run["settings"]["gate"] for run in all_runs) else "gate chosen"
    proven = min(min(EXACT_MODE_PROVEN.of(all_runs, column)) for column in hierarchy_only.COLUMNS)
    return (
        "ours, hierarchy only",
        "ReLU layers of the published width (diatoms: half); starts at label frequencies",
        f"m = {', '.join(map(str, sizes))}, k = 1, {gate}; settings from a search with further rules",
        "batch 128, moving average; HMCNN too, after a search of its own",
        _mode(proven),
        "not measured",
    )
