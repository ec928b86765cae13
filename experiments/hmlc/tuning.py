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
    usual = default_settings(method, name).dropout
    tried: list[dict[str, Any]] = [{}, {"lr": 1e-3}, {"dropout": 0.3} if usual < 0.7 else {"features": 128}]
    if method in CONSTRAINED:
        tried.append({"marginal_weight": 1.0})
    elif method == "semantic-loss":
        tried.append({"semantic_weight": 0.5})
    else:
        tried.append({"features": 128} if usual < 0.7 else {"dropout": 0.5})
    return tried


def tune(
    raw: RawSet, method: str, folder: Path, *, tried: Sequence[dict[str, Any]] | None = None, command: str | None = None
) -> dict[str, Any]:
    """Try the candidates of a method on a set, and record the best; what was tried before is not tried again.

    The best has the largest sum of exact match and AU(PRC) on validation rows, both in percent. Its epochs, one per
    figure, are those of the runs that follow. No test row is read.
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
            best = max(entry["tried"], key=lambda known: known["exact"]["value"] + 100 * known["auprc"]["value"])
            epochs = [best[figure]["epoch"] for figure in FIGURES]
            entry |= {"chosen": best["changes"] | {"chosen": epochs}, "provenance": provenance(command)}
            write_json(folder / FILE, _read(folder) | {f"{raw.name}/{method}": entry})
    finally:
        torch.set_num_threads(threads)
    return dict(entry)


def chosen_settings(folder: Path, method: str, name: str) -> Settings:
    """The settings that were chosen for a method on a set; the defaults where nothing was tried.

    Raises:
        FormatError: the file of choices names settings that there are not.
    """
    changes = _read(folder).get(f"{name}/{method}", {}).get("chosen", {})
    known = {field.name for field in fields(Settings)}
    if set(changes) - known:
        raise FormatError(f"{folder / FILE}: no setting {sorted(set(changes) - known)[0]!r}")
    made: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in changes.items()}
    return replace(default_settings(method, name), **made)


def _read(folder: Path) -> dict[str, Any]:
    path = folder / FILE
    return read_json(path) if path.is_file() else {}
