"""Settings that are chosen once per set, on validation rows, with the same care for every method."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import torch

from experiments.hmlc.data import load_raw
from experiments.hmlc.published import ABLATION_GRID
from experiments.hmlc.run import choose_only, choose_weight
from experiments.hmlc.settings import CONSTRAINED, FIGURES, Settings, default_settings
from experiments.parallel import finished
from experiments.provenance import provenance, read_json, write_json
from semprola.errors import FormatError, SemprolaError

FILE = "chosen.json"
ABLATION_FILE = "ablation.json"
UNITS: tuple[dict[str, Any], ...] = (
    {"components": 1, "units": 2},
    {"components": 1, "units": 4},
    {"components": 4, "units": 2},
)
ABLATION: tuple[dict[str, Any], ...] = (
    *({"components": m} for m in (1, 2, 4, 8)),
    *UNITS,
    *({"components": 4, "gate": [256] * layers} for layers in (2, 4)),
)
"""What the ablation tries, with element-wise units; lists as JSON has them."""
PAPER_ABLATION_FILE = "ablation_paper.json"
PAPER_ABLATION: tuple[dict[str, Any], ...] = tuple(
    {"features": 128, "dropout": 0.7, "lr": 1e-3, "options": False}
    | {"components": m, "units": k, "mixing": "cross", "gate": [256] * gates}
    for m, gates, k in ABLATION_GRID
)
"""The grid of the paper's appendix with its network, the hierarchy alone, and units multiplied crosswise."""
_LARGE = ("expr", "seq", "imclef07a")
"""Sets on which a training takes longest."""
SEED = 100
"""Of the runs that choose; the campaign uses others."""


FOLLOWS = {"fil": "hmcnn", "semantic-loss": "hmcnn", "product-spl": "spl"}
"""Methods that try only what was best for another one, with epochs of their own."""


def candidates(method: str, name: str) -> list[dict[str, Any]]:
    """What is tried for a method on a set, as differences from its default settings.

    On a set, HMCNN, SPL and SPL with known label sets try as many. They are about the learning rate, the network, and
    what the last layer has to offer; on the largest sets, they are fewer.
    """
    usual = default_settings(method, name)
    if usual.dropout < 0.7:
        return _for_paths(method, name in _LARGE)
    return _for_sets(method, usual, name in _LARGE)


def _for_sets(method: str, usual: Settings, large: bool) -> list[dict[str, Any]]:
    slower: dict[str, Any] = {"lr": 1e-3}
    narrow: dict[str, Any] = {"features": 128}
    less: dict[str, Any] = {"dropout": 0.5}
    marginals: dict[str, Any] = {"marginal_weight": 1.0}
    if method == "spl-known":
        return [{}, narrow, less, slower, *([] if large else [{"components": 4}]), marginals]
    if method in CONSTRAINED:
        # several components learn whole label sets, in a quarter of the epochs with less dropout; one learns marginals
        more, one = {"components": 2 * usual.components}, {"components": 1}
        rest = [one | slower] if large else [less | narrow, less | slower]
        return [less, less | more, one, *rest, one | marginals]
    return [{}, less, slower, *([less | slower] if large else [narrow, less | narrow]), {"dropout": 0.6}]


def _for_paths(method: str, large: bool) -> list[dict[str, Any]]:
    slower: dict[str, Any] = {"lr": 1e-3}
    narrow: dict[str, Any] = {"features": 128}
    less: dict[str, Any] = {"dropout": 0.3}
    deeper = narrow | {"gate": [256, 256]}
    if method in CONSTRAINED:
        marginals: dict[str, Any] = {"marginal_weight": 1.0}
        free = marginals | {"options": False}  # of all but the hierarchy, as HMCNN is: it may predict nothing
        return [{}, deeper, marginals, *([] if large else [slower, less]), slower | free, deeper | free]
    return [{}, deeper, slower, *([] if large else [less, narrow]), slower | less, slower | deeper]


def _candidates(path: Path, method: str, name: str) -> list[dict[str, Any]]:
    return _followed(path, method, name) if method in FOLLOWS else candidates(method, name)


def _followed(path: Path, method: str, name: str) -> list[dict[str, Any]]:
    """What was best for the method that this one follows, by any figure; for the semantic loss with two weights."""
    leader = FOLLOWS[method]
    tried = _tried(path, name, leader)
    if not tried:
        raise SemprolaError(
            f"{method} takes settings over from {leader}: first run --methods {leader} --tune on {name}"
        )
    best = [_best(tried, figure)["changes"] for figure in FIGURES]
    more = [best[0] | {"semantic_weight": 0.5}] if method == "semantic-loss" else []
    return [changes for number, changes in enumerate(best) if changes not in best[:number]] + more


def tune(
    names: Sequence[str],
    methods: Sequence[str],
    folder: Path,
    *,
    data: str | None = None,
    processes: int = 1,
    ray: bool = False,
    tried: Sequence[dict[str, Any]] | None = None,
    command: str | None = None,
    say: Callable[[str], None] = lambda text: print(text, file=sys.stderr, flush=True),
) -> None:
    """Try the candidates of methods on sets, and record what they reach; what was tried before is not tried again.

    No test row is read.

    Args:
        names: of the sets.
        methods: names.
        folder: where choices lie.
        data: the data folder.
        processes: how many candidates at a time.
        ray: let Ray try them instead, see `experiments.parallel.finished`.
        tried: settings to try in place of the candidates.
        command: the command line to record.
        say: told about every candidate.
    """
    path = folder / FILE
    for group in ([m for m in methods if m not in FOLLOWS], [m for m in methods if m in FOLLOWS]):
        trials = [
            (name, method, changes)
            for name in names
            for method in group
            for changes in (_candidates(path, method, name) if tried is None else tried)
        ]
        _try_all(path, trials, data, processes, ray, command, say)
    without = [
        (name, method, _best(found, "exact"))
        for name in names
        for method in methods
        if (found := _tried(path, name, method)) and "known_weight" not in _best(found, "exact")
    ]
    calls = [(name, method, best["changes"], best["exact"]["epoch"], data) for name, method, best in without]
    for number, weight in finished(_weigh, calls, processes, ray=ray):
        name, method, best = without[number]
        new = [one | {"known_weight": weight} if one == best else one for one in _tried(path, name, method)]
        _record(path, name, method, new, command)


def ablate(
    names: Sequence[str],
    folder: Path,
    *,
    cross: Sequence[str] = (),
    paper: bool = False,
    data: str | None = None,
    processes: int = 1,
    ray: bool = False,
    command: str | None = None,
    say: Callable[[str], None] = lambda text: print(text, file=sys.stderr, flush=True),
) -> None:
    """Try other numbers of components, units and gate layers of SPL, one at a time, on validation rows.

    Args:
        names: of the sets.
        folder: where results lie.
        cross: of these sets, units are also multiplied crosswise.
        paper: try the grid of the paper instead.
        data: the data folder.
        processes: how many at a time.
        ray: let Ray do them instead, see `experiments.parallel.finished`.
        command: the command line to record.
        say: told about every training.
    """
    trials = []
    for name in names:
        changes = [*ABLATION, *(with_units | {"mixing": "cross"} for with_units in UNITS if name in cross)]
        trials += [(name, "spl", {"dropout": 0.5} | one) for one in changes]
    if paper:
        trials = [(name, "spl", changes) for name in names for changes in PAPER_ABLATION]
    _try_all(folder / (PAPER_ABLATION_FILE if paper else ABLATION_FILE), trials, data, processes, ray, command, say)


def _try_all(
    path: Path,
    trials: Sequence[tuple[str, str, dict[str, Any]]],
    data: str | None,
    processes: int,
    ray: bool,
    command: str | None,
    say: Callable[[str], None],
) -> None:
    """Try what is not on file yet, and add it."""
    waiting = [
        (name, method, changes)
        for name, method, changes in trials
        if all(known["changes"] != changes for known in _tried(path, name, method))
    ]
    for number, figures in finished(_try, [(*trial, data) for trial in waiting], processes, ray=ray):
        name, method, changes = waiting[number]
        _record(path, name, method, [*_tried(path, name, method), {"changes": changes, **figures}], command)
        values = ", ".join(f"{figure} {figures[figure]['value']:.4g}" for figure in FIGURES)
        say(f"{name} {method} {changes}: {values} on validation rows")


def _try(name: str, method: str, changes: dict[str, Any], data: str | None) -> dict[str, Any]:
    with one_thread():
        return choose_only(load_raw(name, data), _changed(method, name, changes), SEED)


def _weigh(name: str, method: str, changes: dict[str, Any], epoch: int, data: str | None) -> float | None:
    with one_thread():
        return choose_weight(load_raw(name, data), _changed(method, name, changes), SEED, epoch)


def _changed(method: str, name: str, changes: dict[str, Any]) -> Settings:
    lists_as_tuples: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value for key, value in changes.items()
    }
    return replace(default_settings(method, name), **lists_as_tuples)


@contextmanager
def one_thread() -> Iterator[None]:
    """In this block torch uses one thread."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def _record(path: Path, name: str, method: str, tried: list[dict[str, Any]], command: str | None) -> None:
    entry = {"tried": tried, "provenance": provenance(command)}
    write_json(path, _read(path) | {f"{name}/{method}": entry})


def _tried(path: Path, name: str, method: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = _read(path).get(f"{name}/{method}", {}).get("tried", [])
    return found


def _best(tried: Sequence[dict[str, Any]], figure: str) -> dict[str, Any]:
    return max(tried, key=lambda known: known[figure]["value"])


def chosen_settings(folder: Path, method: str, name: str) -> list[Settings]:
    """The settings that were chosen for a method on a set; the defaults where nothing was tried.

    Every figure has the settings that were best for it on validation rows, which are often the same.

    Returns:
        One to three settings; `chosen` says which figures each is for, and at which epoch.

    Raises:
        FormatError: the file of choices names settings that there are not.
    """
    tried = _tried(folder / FILE, name, method)
    if not tried:
        return [default_settings(method, name)]
    best = {figure: _best(tried, figure) for figure in FIGURES}
    found = [one for one in tried if any(one is chosen for chosen in best.values())]
    for one in found:
        _refuse_unknown(one["changes"], folder / FILE)
    found.sort(key=lambda one: one is not best["exact"])  # the settings for exact match come first
    return [
        replace(
            _changed(method, name, one["changes"]),
            chosen=tuple(one[figure]["epoch"] if best[figure] is one else 0 for figure in FIGURES),
            known_weight=one.get("known_weight") if best["exact"] is one else None,
        )
        for one in found
    ]


def best_on_validation(folder: Path, methods: Sequence[str], name: str, figure: str) -> str | None:
    """The method whose best settings have the highest figure on validation rows; the first of equals, None if none."""
    values: dict[str, float] = {}
    for method in methods:
        if tried := _tried(folder / FILE, name, method):
            values[method] = _best(tried, figure)[figure]["value"]
    return max(values, key=lambda method: values[method]) if values else None


def tried_settings(path: Path) -> list[tuple[str, str, list[dict[str, Any]]]]:
    """Set, method and what was tried with what it reached on validation rows, for everything in a file."""
    return [(*name.split("/"), entry["tried"]) for name, entry in _read(path).items()]


def _refuse_unknown(changes: dict[str, Any], path: Path) -> None:
    unknown = sorted(set(changes) - {field.name for field in fields(Settings)})
    if unknown:
        raise FormatError(f"{path}: no setting {unknown[0]!r}")


def _read(path: Path) -> dict[str, Any]:
    return read_json(path) if path.is_file() else {}
