"""`semprola compile`, `count`, `check` and `draw`."""

from __future__ import annotations

import csv
import math
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from semprola.circuit import Circuit
from semprola.circuit.weighted import weighted_count
from semprola.cli.output import emit
from semprola.cli.sources import read_constraint, write_circuit
from semprola.compiler import compile as compile_constraint
from semprola.compiler.budget import Budget
from semprola.compiler.clausal import compile_projected, compile_to_count
from semprola.errors import FormatError, UnsatisfiableError
from semprola.logic import Cnf

Source = Annotated[str, typer.Argument(help="a formula, or a .cnf[.gz], .sp, .nnf, .sdd or .txt file")]
Backend = Annotated[str, typer.Option(help="auto, topdown, sdd, bdd, zdd, or a compiler of yours as d4:/path")]
Timeout = Annotated[float | None, typer.Option(help="most seconds")]
MaxNodes = Annotated[int | None, typer.Option(help="most nodes")]
Memory = Annotated[str | None, typer.Option(help="most memory, such as 2GB")]
NoCache = Annotated[bool, typer.Option("--no-cache", help="neither read nor write the cache")]
Json = Annotated[bool, typer.Option("--json", help="print one JSON object")]
VtreeFile = Annotated[Path | None, typer.Option(help="the vtree of an .sdd file")]
_MOST_EXACT_EDGES = 200_000
_MOST_SHOWN = 5


def compile_command(
    source: Source,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="write to a .sp, .nnf, .d4, .sdd or .dot file")
    ] = None,
    labels: Annotated[str | None, typer.Option(help="comma-separated: the column order of y")] = None,
    given: Annotated[str, typer.Option(help="comma-separated: variables that are inputs")] = "",
    backend: Backend = "auto",
    timeout: Timeout = None,
    max_nodes: MaxNodes = None,
    memory: Memory = None,
    no_cache: NoCache = False,
    vtree: VtreeFile = None,
    as_json: Json = False,
) -> None:
    """Compile a constraint to a circuit and say how large it is.

    Example: semprola compile "(cat -> animal) & (dog -> animal)" --out animals.sp
    """
    circuit = compile_constraint(
        read_constraint(source, vtree),
        labels=None if labels is None else [name for name in labels.split(",") if name],
        given=[name for name in given.split(",") if name],
        backend=backend,
        timeout=timeout,
        max_nodes=max_nodes,
        memory=memory,
        cache=not no_cache,
        progress=True,
    )
    if out is not None:
        write_circuit(circuit, out)
    written = {} if out is None else {"written": str(out)}
    emit({**_summary(circuit), **written}, as_json)


def count_command(
    source: Source,
    weighted: Annotated[bool, typer.Option("--weighted", help="use the weights of the DIMACS file")] = False,
    projected: Annotated[bool, typer.Option("--projected", help="count over the file's `c p show` variables")] = False,
    backend: Backend = "auto",
    timeout: Timeout = None,
    max_nodes: MaxNodes = None,
    memory: Memory = None,
    no_cache: NoCache = False,
    vtree: VtreeFile = None,
    as_json: Json = False,
) -> None:
    """Count the models of a constraint exactly.

    Example: semprola count problem.cnf.gz --weighted
    """
    constraint = read_constraint(source, vtree)
    cnf = constraint if isinstance(constraint, Cnf) else None
    if (weighted or projected) and cnf is None:
        raise FormatError(f"{source}: --weighted and --projected need a DIMACS file")
    if weighted and cnf is not None and not cnf.weights:
        raise FormatError(f"{source}: the file has no weights (lines `c p weight LITERAL WEIGHT 0`)")
    limits: dict[str, Any] = {"timeout": timeout, "max_nodes": max_nodes, "memory": memory, "progress": True}
    try:
        if projected and cnf is not None:
            circuit = compile_projected(cnf, Budget(**limits))
        elif cnf is not None and backend == "auto":
            keep = [int(name) for name, pair in _weights(cnf).items() if set(pair) != {1}] if weighted else []
            circuit = compile_to_count(cnf, Budget(**limits), keep)
        else:
            circuit = compile_constraint(constraint, backend=backend, cache=not no_cache, **limits)
    except UnsatisfiableError:
        emit({"models": 0}, as_json)
        return
    if weighted and cnf is not None:
        emit(_weighted(circuit, cnf), as_json)
        return
    models = circuit.model_count()
    emit({"models": models, "log10": _log10(models)}, as_json)


def check_command(
    source: Source,
    rows: Annotated[Path | None, typer.Argument(help="a .csv file with a line of labels, or a .npy array")] = None,
    vtree: VtreeFile = None,
    timeout: Timeout = None,
    as_json: Json = False,
) -> None:
    """Say whether a constraint can hold, what its circuit is good for, and which rows of a file break it.

    The exit status is 1 if it cannot hold or a row breaks it.

    Example: semprola check "(cat -> animal) & (dog -> animal)" labels.csv
    """
    constraint = read_constraint(source, vtree)
    try:
        circuit = (
            constraint
            if isinstance(constraint, Circuit)
            else compile_constraint(constraint, timeout=timeout, progress=True)
        )
    except UnsatisfiableError as error:
        emit({"satisfiable": False, "problem": str(error)}, as_json)
        raise typer.Exit(1) from None
    result = {
        "satisfiable": True,
        "labels": circuit.num_labels,
        **{name: getattr(circuit, f"is_{name}") for name in ("decomposable", "deterministic", "smooth", "structured")},
    }
    broken: list[int] = []
    if rows is not None:
        table = _rows(rows, circuit.variables)
        y, x = table[:, : circuit.num_labels], table[:, circuit.num_labels :]
        held = circuit.satisfied(y, x if circuit.given else None)
        broken = (np.flatnonzero(~held) + 1).tolist()
        result |= {"rows": len(table), "broken": len(broken), "first broken": broken[:_MOST_SHOWN]}
    emit(result, as_json)
    if broken or not (result["decomposable"] and result["deterministic"]):
        raise typer.Exit(1)


def draw_command(
    source: Source,
    out: Annotated[Path, typer.Argument(help="a .svg, .png or .dot file")],
    vtree: VtreeFile = None,
    timeout: Timeout = None,
) -> None:
    """Draw the circuit of a constraint; of a large one, a summary.

    Example: semprola draw "a -> b | c" picture.svg
    """
    if out.suffix.lower() not in (".svg", ".png", ".dot"):
        raise FormatError(f"{out}: a picture is an .svg, .png or .dot file")
    constraint = read_constraint(source, vtree)
    if not isinstance(constraint, Circuit):
        constraint = compile_constraint(constraint, timeout=timeout, progress=True)
    constraint.draw(out)


def _summary(circuit: Circuit) -> dict[str, Any]:
    models = circuit.model_count()
    return {
        "labels": circuit.num_labels,
        "given": len(circuit.given),
        "nodes": circuit.num_nodes,
        "edges": circuit.num_edges,
        "log10 of models": _log10(models),
        **{name: circuit.info[name] for name in ("backend", "reason", "seconds") if name in circuit.info},
    }


def _weights(cnf: Cnf) -> dict[str, tuple[Fraction, Fraction]]:
    """The weights of the negative and the positive literal of the variables that have any; they add up to 1 if one
    is missing.
    """
    weights = {}
    for v in range(1, cnf.num_vars + 1):
        if v in cnf.weights or -v in cnf.weights:
            no = cnf.weights.get(-v, 1 - cnf.weights.get(v, Fraction(0)))
            yes = cnf.weights.get(v, 1 - cnf.weights.get(-v, Fraction(0)))
            weights[str(v)] = (no, yes)
    return weights


def _weighted(circuit: Circuit, cnf: Cnf) -> dict[str, Any]:
    known = set(circuit.variables)
    shown = {name: pair for name, pair in _weights(cnf).items() if name in known}
    if circuit.num_edges <= _MOST_EXACT_EDGES:
        total = weighted_count(circuit, shown)
        return {"weight": str(total), "about": float(total), "log10": _log10(total)}
    about = weighted_count(circuit, shown, exact=False)
    return {"about": about, "log10": _log10(about)}


def _log10(value: Any) -> float | None:
    if value <= 0:
        return None
    if isinstance(value, float):
        return math.log10(value)
    return math.log10(value.numerator) - math.log10(value.denominator)


def _rows(path: Path, names: tuple[str, ...]) -> Any:
    """Rows of 0 and 1, their columns in the order of the names."""
    if path.suffix.lower() == ".npy":
        try:
            table = np.load(path, allow_pickle=False)
        except (ValueError, OSError, EOFError) as error:
            raise FormatError(f"{path}: not an array: {error}") from None
        if table.ndim != 2 or table.shape[1] != len(names):
            raise FormatError(f"{path}: has shape {list(table.shape)}, expected [rows, {len(names)}]")
        return table
    with open(path, encoding="utf-8", newline="") as file:
        lines = list(csv.reader(file))
    if not lines:
        raise FormatError(f"{path}:1: the file is empty; the first line must name the labels")
    place = {name.strip(): i for i, name in enumerate(lines[0])}
    missing = next((name for name in names if name not in place), None)
    if missing is not None:
        raise FormatError(f"{path}:1: there is no column {missing!r}")
    table = np.zeros((len(lines) - 1, len(names)), dtype=np.uint8)
    for number, line in enumerate(lines[1:], start=2):
        for column, name in enumerate(names):
            word = line[place[name]].strip() if place[name] < len(line) else ""
            if word not in ("0", "1"):
                raise FormatError(f"{path}:{number}: column {name!r} must be 0 or 1, not {word[:24]!r}")
            table[number - 2, column] = word == "1"
    return table
