"""The measured Table 1 as text, as Markdown and as a picture."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from experiments.pictures import COLOURS, blank_figure, save
from experiments.table_one.systems import SYSTEMS, published

TITLES = {
    "D1": "Probabilistic",
    "D2": "Expressive",
    "D3": "Consistent",
    "D4": "General",
    "D5": "Modular",
    "D6": "Efficient",
}
MEASURED = {
    "D1": "sum off by; writings differ by",
    "D2": "XOR, mixture, parity (%)",
    "D3": "violations: random, adversarial",
    "D4": "kinds taken",
    "D5": "backbones",
    "D6": "exponent of time",
}
_TOYS = ("xor", "mixture", "parity")
Results = Mapping[str, Mapping[str, Mapping[str, Any]]]


def print_table(results: Results) -> None:
    """Print the marks in 80 columns, with a star where the paper has another mark."""

    print("\n" + " " * 18 + "".join(f"{key:>10}" for key in TITLES))
    for system, found in results.items():
        print(f"{SYSTEMS[system]:<18}" + "".join(f"{_mark(found[key]['mark'], system, key):>10}" for key in TITLES))
    print("\n*: the paper has the other mark")


def markdown(results: Results) -> str:
    """The table of marks, the published marks, what was measured, and D4 by kind of constraint."""
    systems = list(results)
    lines = ["Measured, with a star where the published mark differs:", ""]
    lines += _head(["", *(SYSTEMS[system] for system in systems)])
    for key, title in TITLES.items():
        cells = [_both(results[system][key]["mark"], published(key, system)) for system in systems]
        lines.append(_line([f"{key} {title}", *cells]))
    # the paper has one column for both layers
    columns = [system for system in systems if system != "product-spl"]
    lines += ["", *_fold("The marks as published"), *_head(["", *(SYSTEMS[system] for system in columns)])]
    for key, title in TITLES.items():
        lines.append(_line([f"{key} {title}", *(_tick(published(key, system)) for system in columns)]))
    lines += ["", "</details>", "", *_fold("The figures behind the measured marks")]
    lines += _head(["", *(f"{key}: {title}" for key, title in MEASURED.items())])
    for system in systems:
        lines.append(_line([SYSTEMS[system], *(figures(key, results[system][key]) for key in MEASURED)]))
    lines += ["", "</details>", "", *_fold("D4 by kind of constraint")]
    lines += _head(["", *(SYSTEMS[system] for system in systems)])
    for kind in results[systems[0]]["D4"]["kinds"]:
        lines.append(_line([kind, *(_kind(results[system]["D4"]["kinds"][kind]) for system in systems)]))
    return "\n".join([*lines, "", "</details>"]) + "\n"


def figures(key: str, found: Mapping[str, Any]) -> str:
    """What a mark rests on, in a few words."""
    if key == "D1":
        if found["sum off by"] is None:
            return "no probabilities"
        return f"{_small(found['sum off by'])}; {_small(found['writings differ by'])}"
    if key == "D2":
        return ", ".join(str(round(found[toy]["fit"])) for toy in _TOYS)
    if key == "D3":
        return f"{found['random']}, {found['adversarial']} of {found['of']:,}"
    if key == "D4":
        return f"{found['taken']} of {found['of']}"
    if key == "D5":
        return f"{len(found['backbones'])} of {found['of']}"
    return f"{found['exponent']}" + (f"; refuses {found['refused'].split(':')[0]}" if found["refused"] else "")


def picture(results: Results, path: Path) -> Path:
    """A log-log plot of seconds against the size of the constraint, with exponents in the legend."""
    figure = blank_figure(7.2, 4.2)
    figure.set_layout_engine("constrained")
    axes = figure.subplots()
    for system, found in results.items():
        seconds = {int(size): value for size, value in found["D6"]["seconds"].items()}
        if seconds:
            label = f"{SYSTEMS[system]} ({found['D6']['exponent']})"
            axes.plot(
                list(seconds), list(seconds.values()), color=COLOURS[system], marker="o", markersize=4, label=label
            )
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xlabel("rules of two labels")
    axes.set_ylabel("processor seconds for 32 rows")
    axes.grid(color="#e8e8e8")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(1.01, 1.0), title="system (exponent)")
    return save(figure, path)


def _fold(title: str) -> list[str]:
    """The beginning of a fold."""
    return [f"<details><summary>{title}</summary>", ""]


def _mark(mark: bool, system: str, key: str) -> str:
    return ("yes" if mark else "no") + ("*" if mark != published(key, system) else " ")


def _both(mark: bool, paper: bool) -> str:
    return _tick(mark) + ("" if mark == paper else " *")


def _tick(mark: bool) -> str:
    return "✓" if mark else "✗"


def _kind(found: Mapping[str, Any]) -> str:
    """What a constraint changes: violations without and with it, or the loss that it adds."""
    if "refused" in found:
        return "refused"
    with_it, without = found["violations"]
    if "added loss" not in found:
        return f"{without} → {with_it}"
    if not any(found["added loss"]) and with_it == without:
        return "no change"
    return ", ".join(f"{value:+,.0f}" if abs(value) >= 100 else f"{value:+.2g}" for value in found["added loss"])


def _small(value: float) -> str:
    return "below 1e-6" if value < 1e-6 else f"{value:.2g}"


def _head(cells: list[str]) -> list[str]:
    return [_line(cells), "|---" * len(cells) + "|"]


def _line(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"
