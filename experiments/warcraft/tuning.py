"""Settings that are chosen on validation maps, with the same care for every method; no test map is read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from experiments.provenance import provenance, read_json, write_json
from experiments.warcraft.models import ModelSettings
from experiments.warcraft.runs import Task, run
from semprola.training import FitSettings

FILE = "chosen.json"
SEED = 100
"""Of the runs that choose; a campaign uses others."""
EPOCHS = 6
FIGURES = {"grid": "exact", "costs": "optimal", "resnet18": "exact"}
"""What is compared on validation maps. Costs cannot know the tie rule, so they are chosen by optimal paths."""

_RATES = {"grid": (3e-3, 6e-3), "costs": (1e-2, 3e-2, 1e-1), "resnet18": (1e-3,)}
_OWN: dict[str, tuple[dict[str, float], ...]] = {
    # of a loss summed over 264 edges; the released code has 0.0005 to 0.05 of a mean, 0.13 to 13 of a sum
    "semantic-loss": tuple({"semantic_weight": weight} for weight in (0.5, 0.1, 1.0, 3.0, 10.0)),
    "perturbed": ({"sigma": 0.2}, {"sigma": 1.0}),
}
_FOLLOWS = {"nesy-entropy": "semantic-loss", "spl": "product-spl", "hmm": "product-spl"}
"""Methods that take over what was chosen for another one."""


def candidates(net: str, method: str) -> list[dict[str, dict[str, float]]]:
    """What is tried: the learning rates of the network, then the method's own settings.

    Example:
        >>> len(candidates("grid", "fil")), len(candidates("costs", "perturbed"))
        (2, 5)
    """
    tried: list[dict[str, dict[str, float]]] = [{"training": {"lr": lr}, "model": {}} for lr in _RATES[net]]
    return tried + [{"training": {"lr": _RATES[net][0]}, "model": dict(own)} for own in _OWN.get(method, ())]


def tune(task: Task, net: str, method: str, training: FitSettings, folder: Path) -> dict[str, Any]:
    """Try the candidates of a method and record the best; what was tried before is not tried again."""
    name = f"{net}/{method}" + ("/8" if task.neighbours == 8 else "")
    entry = _read(folder).get(name, {"tried": []})
    figure = FIGURES[net]
    blind = replace(task, test=task.valid)
    tried = candidates(net, method)
    for changes in tried if len(tried) > 1 else ():
        if any(known["changes"] == changes for known in entry["tried"]):
            continue
        settings: Any = {"method": method, "net": net, **changes["model"]}
        short: Any = {"epochs": EPOCHS, **changes["training"]}
        result, _ = run(blind, ModelSettings(**settings), replace(training, **short), SEED, quiet=True)
        entry["tried"].append({"changes": changes, figure: result["valid"][figure]})
        best = max(entry["tried"], key=lambda known: known[figure])
        entry |= {"chosen": best["changes"], "maps": task.source, "epochs": EPOCHS, "provenance": provenance()}
        write_json(folder / FILE, _read(folder) | {name: entry})
    return dict(entry)


def chosen_settings(
    folder: Path, settings: ModelSettings, training: FitSettings, neighbours: int = 4
) -> tuple[ModelSettings, FitSettings]:
    """The settings with what was chosen for them; unchanged where nothing was tried."""
    method = _FOLLOWS.get(settings.method, settings.method)
    known = _read(folder)
    names = (
        (f"{settings.net}/{method}/8", f"{settings.net}/{method}") if neighbours == 8 else (f"{settings.net}/{method}",)
    )
    entry: Mapping[str, Any] = next((known[name] for name in names if name in known), {})
    changes: Any = entry.get("chosen", {"model": {}, "training": {}})
    return replace(settings, **changes["model"]), replace(training, **changes["training"])


def _read(folder: Path) -> dict[str, Any]:
    path = folder / FILE
    return read_json(path) if path.is_file() else {}


def tuned_methods(methods: tuple[str, ...]) -> list[str]:
    """The methods that are tried themselves, in order and once."""
    return list(dict.fromkeys(_FOLLOWS.get(method, method) for method in methods))
