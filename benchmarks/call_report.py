"""The measurements of `benchmarks.calls` as a section of docs/speed.md, and the ratios that other pages quote."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

OURS, BARE, SIGMOIDS = "semprola", "bare engine", "sigmoids"
_MEANING = {
    "log Z + gradient": "`layer(logits).log_partition.sum().backward()`",
    "log_prob + gradient": "`layer(logits).log_prob(y).sum().backward()`",
    "step": "a training step of a network (64, 64, labels) that ends in `layer(logits).log_prob(y)`",
    "mode": "`layer(logits).mode`",
}


def section(result: Mapping[str, Any]) -> str:
    """The tables, in Markdown."""
    command = result.get("provenance", {}).get("command", "python -m benchmarks.calls")
    earlier = " These seconds are of an earlier run, without compiled kernels on disk." if "--cold" in command else ""
    tables = "\n\n".join(f"**{task}**: {meaning}\n\n{_table(result, task)}" for task, meaning in _MEANING.items())
    return f"""## The calls that users make

`{command}`:
milliseconds of processor time on one thread at batch {result["conditions"]["batch"]}, from logits to numbers, with
everything that Python does on the way. `layer` is `sp.ConstraintLayer(rules)`. KLay runs as it is, compiled (its
default) and as a JAX function; all numbers were checked to agree. "x" is the time of the fastest of these divided by
that of the layer. The first call of a candidate, which compiles it, took the processor
seconds in brackets.{earlier}

{tables}

{_reasons(result)}
"""


def advantages(result: Mapping[str, Any], task: str) -> dict[str, float]:
    """For each circuit, the time of KLay at its best divided by ours."""
    found = {}
    for circuit, row in _by_circuit(result, task).items():
        best = _best(row)
        if best is not None and "cpu_ms" in row.get(OURS, {}):
            found[circuit] = best / row[OURS]["cpu_ms"]
    return found


def best_mode(result: Mapping[str, Any]) -> str:
    """What `advantages` compares with, in words."""
    limits = {row["unable"].split(",")[0] for row in result["rows"] if row.get("unable", "").startswith("not tried")}
    return "KLay in its best mode" + "".join(f" (its compilers were {limit})" for limit in sorted(limits))


def steps(result: Mapping[str, Any]) -> dict[str, float]:
    """For each circuit, the time of a training step divided by that with sigmoids."""
    times = _by_circuit(result, "step")
    return {
        name: row[OURS]["cpu_ms"] / row[SIGMOIDS]["cpu_ms"]
        for name, row in times.items()
        if all("cpu_ms" in row.get(key, {}) for key in (OURS, SIGMOIDS))
    }


def _best(row: Mapping[str, Mapping[str, Any]]) -> float | None:
    return min((own["cpu_ms"] for key, own in row.items() if key.startswith("klay") and "cpu_ms" in own), default=None)


def _by_circuit(result: Mapping[str, Any], task: str) -> dict[str, dict[str, Mapping[str, Any]]]:
    found: dict[str, dict[str, Mapping[str, Any]]] = {}
    for row in result["rows"]:
        if row["task"] == task:
            found.setdefault(row["circuit"], {})[row["engine"]] = row
    return found


def _table(result: Mapping[str, Any], task: str) -> str:
    circuits = _by_circuit(result, task)
    found = {key for row in circuits.values() for key, own in row.items() if "cpu_ms" in own}
    order = [OURS, BARE, SIGMOIDS, *(key for row in circuits.values() for key in row)]
    engines = [key for key in dict.fromkeys(order) if key in found]
    peers = any(key.startswith("klay") for key in engines)
    lines = ["| " + " | ".join(["circuit", "edges", *engines, *(["x"] if peers else [])]) + " |"]
    lines.append("| " + " | ".join(["---"] * (len(engines) + 2 + peers)) + " |")
    gains = advantages(result, task)
    for name, row in circuits.items():
        cells = [name, str(next(iter(row.values()))["edges"])]
        cells += [_cell(row.get(key, {}), key) for key in engines]
        cells += [f"{gains[name]:.1f}" if name in gains else "–"] if peers else []
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _cell(row: Mapping[str, Any], engine: str) -> str:
    if "cpu_ms" not in row:
        return "–"
    shown = f"{row['cpu_ms']:.3g}"
    return f"{shown} ({row['first_s']:.2g} s)" if engine.startswith("klay") else shown


def _reasons(result: Mapping[str, Any]) -> str:
    found: dict[str, dict[str, None]] = {}
    for row in result["rows"]:
        if "unable" in row:
            found.setdefault(f"{row['engine']}, {row['task']}: {row['unable']}", {})[row["circuit"]] = None
    every = len({row["circuit"] for row in result["rows"]})
    lines = [f"- {why}" + (f" ({', '.join(where)})" if len(where) < every else "") for why, where in found.items()]
    cirkit = "- cirkit: literals cannot have different scores in each row"
    return "\n".join([*lines, cirkit])
