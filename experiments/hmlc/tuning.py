"""Settings that are chosen once per set, on validation rows, with the same care for every method."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import torch

from experiments.hmlc.data import RawSet
from experiments.hmlc.run import choose_only
from experiments.hmlc.settings import CONSTRAINED, FIGURES, Settings, default_settings
from experiments.provenance import provenance, read_json, write_json
from semprola.errors import FormatError

FILE = "chosen.json"
SEED = 100
"""Of the runs that choose; the campaign uses others."""


def candidates(method: str, name: str) -> list[dict[str, Any]]:
    """What is tried for a method on a set, as differences from its default settings; the defaults come first.

    Every method tries as many: its learning rate, its network, and what its last layer has to offer.
    """
    usual = default_settings(method, name)
    paths = usual.dropout < 0.7
    if method in CONSTRAINED and not paths:
        # many components learn whole label sets, in a third of the epochs with less dropout; one learns marginals best
        less: dict[str, Any] = {"dropout": 0.5}
        more = {"components": 2 * usual.components if usual.components > 1 else 4}
        return [less, less | {"features": 128}, less | {"lr": 1e-3}, less | more, {"components": 1}]
    tried: list[dict[str, Any]] = [{}, {"lr": 1e-3}, {"dropout": 0.3} if paths else {"features": 128}]
    network = {"features": 128} if paths else {"dropout": 0.5}
    if method in CONSTRAINED:
        return [*tried, {"marginal_weight": 1.0}, {"components": 4}]
    if method == "semantic-loss":
        return [*tried, {"semantic_weight": 0.5}, network]
    return [*tried, network, {"features": 128, "dropout": 0.3 if paths else 0.5}]


def tune(
    raw: RawSet, method: str, folder: Path, *, tried: Sequence[dict[str, Any]] | None = None, command: str | None = None
) -> dict[str, Any]:
    """Try the candidates of a method on a set, and record what they reach; what was tried before is not tried again.

    No test row is read.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    entry = _read(folder).get(f"{raw.name}/{method}", {"tried": []})
    base = default_settings(method, raw.name)
    try:
        for changes in candidates(method, raw.name) if tried is None else tried:
            if any(known["changes"] == changes for known in entry["tried"]):
                continue
            figures = choose_only(raw, replace(base, **changes), SEED)
            entry["tried"].append({"changes": changes, **figures})
            entry |= {"provenance": provenance(command)}
            write_json(folder / FILE, _read(folder) | {f"{raw.name}/{method}": entry})
    finally:
        torch.set_num_threads(threads)
    return dict(entry)


def chosen_settings(folder: Path, method: str, name: str) -> list[Settings]:
    """The settings that were chosen for a method on a set; the defaults where nothing was tried.

    Exact match and AU(PRC) each have the settings that were best for them on validation rows, which are often the same.
    The Hamming score takes the better of the two, so that there are no more than two trainings.

    Returns:
        One or two settings; `chosen` says which figures each is for, and at which epoch.

    Raises:
        FormatError: the file of choices names settings that there are not.
    """
    tried: list[dict[str, Any]] = _read(folder).get(f"{name}/{method}", {}).get("tried", [])
    if not tried:
        return [default_settings(method, name)]
    best = {figure: max(tried, key=lambda known: known[figure]["value"]) for figure in ("exact", "auprc")}
    best["hamming"] = max(best["exact"], best["auprc"], key=lambda known: known["hamming"]["value"])
    found = [best["exact"]] if best["exact"] is best["auprc"] else [best["exact"], best["auprc"]]
    return [
        replace(
            default_settings(method, name),
            **_known_settings(one["changes"], folder),
            chosen=tuple(one[figure]["epoch"] if best[figure] is one else 0 for figure in FIGURES),
        )
        for one in found
    ]


def tried_settings(folder: Path) -> list[tuple[str, str, list[dict[str, Any]]]]:
    """Set, method and candidates with what they reached on validation rows, for everything that was tried."""
    return [(*name.split("/"), entry["tried"]) for name, entry in _read(folder).items()]


def _known_settings(changes: dict[str, Any], folder: Path) -> dict[str, Any]:
    known = {field.name for field in fields(Settings)}
    if set(changes) - known:
        raise FormatError(f"{folder / FILE}: no setting {sorted(set(changes) - known)[0]!r}")
    return {key: tuple(value) if isinstance(value, list) else value for key, value in changes.items()}


def _read(folder: Path) -> dict[str, Any]:
    path = folder / FILE
    return read_json(path) if path.is_file() else {}
