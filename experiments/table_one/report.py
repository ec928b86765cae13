"""The measured Table 1 as text, as Markdown and as a picture."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from experiments.pictures import blank_figure, save
from experiments.table_one.systems import SYSTEMS, published

TITLES = {
    "D1": "Probabilistic",
    "D2": "Expressive",
    "D3": "Consistent",
    "D4": "General",
    "D5": "Modular",
    "D6": "Efficient",
}
Results = Mapping[str, Mapping[str, Mapping[str, Any]]]


def print_table(results: Results) -> None:
    """Marks in 80 columns; a star where the paper has another mark."""

    print("\n" + " " * 18 + "".join(f"{key:>10}" for key in TITLES))
    for system, found in results.items():
        print(f"{SYSTEMS[system]:<18}" + "".join(f"{_mark(found[key]['mark'], system, key):>10}" for key in TITLES))
    print("\n*: the paper has the other mark")


def markdown(results: Results) -> str:
    """The table of marks beside the published ones, and one table with what was measured."""
    systems = list(results)
    lines = ["| | " + " | ".join(SYSTEMS[system] for system in systems) + " |", "|---" * (len(systems) + 1) + "|"]
    for key, title in TITLES.items():
        cells = [_both(results[system][key]["mark"], published(key, system)) for system in systems]
        lines.append(f"| {key} {title} | " + " | ".join(cells) + " |")
    lines += ["", "Measured mark; in brackets the published one where it differs.", ""]
    lines += ["| | D1: sum off by | D1: loss by meaning | D2: right samples | D3: violations (random, adversarial) "]
    lines[-1] += "| D4: kinds taken | D5: backbones | D6: exponent |"
    lines.append("|---" * 8 + "|")
    for system in systems:
        lines.append(f"| {SYSTEMS[system]} | " + " | ".join(_measured(results[system])) + " |")
    return "\n".join(lines) + "\n"


def picture(results: Results, path: Path) -> Path:
    """Seconds of a training step against the size of the constraint, on log-log paper, the exponent in the legend."""
    figure = blank_figure(7.2, 4.2)
    figure.set_layout_engine("constrained")
    axes = figure.subplots()
    for system, found in results.items():
        seconds = {int(size): value for size, value in found["D6"]["seconds"].items()}
        if seconds:
            label = f"{SYSTEMS[system]} ({found['D6']['exponent']})"
            axes.plot(list(seconds), list(seconds.values()), marker="o", markersize=4, label=label)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xlabel("rules of two labels")
    axes.set_ylabel("processor seconds of a training step, 32 rows")
    axes.grid(color="#e8e8e8")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(1.01, 1.0), title="system (exponent)")
    return save(figure, path)


def _mark(mark: bool, system: str, key: str) -> str:
    return ("yes" if mark else "no") + ("*" if mark != published(key, system) else " ")


def _both(mark: bool, paper: bool) -> str:
    own = "✓" if mark else "✗"
    return own if mark == paper else f"{own} ({'✓' if paper else '✗'})"


def _measured(found: Mapping[str, Mapping[str, Any]]) -> list[str]:
    gap, samples, slope = found["D1"]["sums to one within"], found["D2"]["right samples"], found["D6"]["exponent"]
    d3, d4, refused = found["D3"], found["D4"], found["D6"]["refused"]
    return [
        "no probabilities" if gap is None else "below 1e-6" if gap < 1e-6 else f"{gap:.0e}",
        "yes" if found["D1"]["loss depends on meaning alone"] else "no",
        "cannot sample" if samples is None else f"{samples} %",
        f"{d3['random']}, {d3['adversarial']} of {d3['of']:,}",
        f"{d4['accepted']} of {d4['of']}",
        f"{len(found['D5']['backbones'])} of 3",
        "refused" if refused else f"{slope}",
    ]
