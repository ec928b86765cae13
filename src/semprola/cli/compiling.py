"""`semprola compile`, `count`, `check` and `draw`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from semprola._files import write_atomically
from semprola._words import count
from semprola.cli.output import emit, folded, listed, painted, words
from semprola.errors import FormatError, UnsatisfiableError

if TYPE_CHECKING:
    from semprola.circuit import Circuit

Source = Annotated[str, typer.Argument(metavar="RULES", help="a formula, or a .cnf[.gz], .sp, .nnf, .sdd or .txt file")]
Backend = Annotated[str, typer.Option(help="auto, automata, topdown, sdd, or your own compiler as d4:/path")]
Timeout = Annotated[float | None, typer.Option(help="limit on the time, in seconds")]
MaxNodes = Annotated[int | None, typer.Option(help="limit on the number of nodes")]
Memory = Annotated[str | None, typer.Option(help="limit on the memory, such as 2GB")]
NoCache = Annotated[bool, typer.Option("--no-cache", help="neither read nor write the cache")]
Json = Annotated[bool, typer.Option("--json", help="print one JSON object")]
_LONG = 10**15
"""Counts from here on are also told with a few digits."""
VtreeFile = Annotated[Path | None, typer.Option(help="the vtree of an .sdd file")]


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
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="say why the back end was chosen")] = False,
    as_json: Json = False,
) -> None:
    """Compile a constraint to a circuit and say how large it is.

    Example: semprola compile "(cat -> animal) & (dog -> animal)" --out animals.sp
    """
    from semprola.compiler import compile as compile_constraint
    from semprola.compiler.sources import as_constraint

    circuit = compile_constraint(
        as_constraint(source, vtree),
        labels=None if labels is None else words(labels),
        given=words(given),
        backend=backend,
        timeout=timeout,
        max_nodes=max_nodes,
        memory=memory,
        cache=not no_cache,
        progress=True,
    )
    if out is not None:
        _write(circuit, out)
    if as_json:
        emit({**_summary(circuit), **({} if out is None else {"written": str(out)})}, True)
        return
    print("\n".join(_told(circuit, verbose)))
    if out is not None:
        print(f"written to {out}")


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
    from semprola.cli.weights import log10, weighted_result, weights_of
    from semprola.compiler import compile as compile_constraint
    from semprola.compiler.backends.topdown.backend import compile_projected, compile_to_count
    from semprola.compiler.budget import Budget
    from semprola.compiler.sources import as_constraint
    from semprola.logic import Cnf

    constraint = as_constraint(source, vtree)
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
            keep = [int(name) for name, pair in weights_of(cnf).items() if set(pair) != {1}] if weighted else []
            circuit = compile_to_count(cnf, Budget(**limits), keep)
        else:
            circuit = compile_constraint(constraint, backend=backend, cache=not no_cache, **limits)
    except UnsatisfiableError:
        if as_json:
            emit({"models": 0}, True)
        else:
            print("0 models: the rules contradict each other")
        return
    if weighted and cnf is not None:
        emit(weighted_result(circuit, cnf), as_json)
        return
    models = circuit.model_count()
    if as_json:
        emit({"models": models, "log10": log10(models)}, True)
        return
    print(f"{models} model{'' if models == 1 else 's'}")
    if models >= _LONG:
        print(count(models, "model"))


def check_command(
    source: Source,
    rows: Annotated[
        Path | None, typer.Argument(metavar="ROWS", help="a .csv, .arff, .parquet or .npz table, or a .npy array")
    ] = None,
    html: Annotated[Path | None, typer.Option("--html", help="also write the report to a .html file")] = None,
    every: Annotated[bool, typer.Option("--all", help="show everything, not the first twenty of each kind")] = False,
    vtree: VtreeFile = None,
    timeout: Annotated[float | None, typer.Option(help="limit on the time, in seconds")] = 60.0,
    as_json: Json = False,
) -> None:
    """Review rules, and find the rows that break them.

    An empty cell means "not observed": a row breaks the rules if no way to fill in its empty cells obeys. Rows are
    named by their line in a text file, and by their position from 0 in .npy, .npz and .parquet files. Of a compiled
    circuit, its properties are checked.

    The exit status is 1 if the rules cannot hold together (or that is not known in time), or if a row breaks them.

    Example: semprola check rules.txt labels.csv
    """
    from semprola.circuit import Circuit
    from semprola.cli.checking import check_circuit, check_rules
    from semprola.compiler.sources import as_constraint

    constraint = as_constraint(source, vtree)
    if isinstance(constraint, Circuit):
        result = check_circuit(constraint, rows)
        if as_json:
            emit(result, True)
        else:
            _tell_properties(result)
        if result.get("broken") or not (result["decomposable"] and result["deterministic"]):
            raise typer.Exit(1)
        return
    found = check_rules(source, rows, timeout)
    if html is not None:
        write_atomically(html, found.html().encode())
    if as_json:
        emit(found.to_dict(), as_json)
    else:
        for line in found.text(None if every else 20).splitlines():
            print(folded(line) if line.startswith(" ") else painted(line, "bold", sys.stdout))
        if html is not None:
            print(f"report written to {html}")
    if not found.ok:
        raise typer.Exit(1)


def draw_command(
    source: Source,
    out: Annotated[Path, typer.Argument(metavar="OUT", help="a .svg, .png or .dot file")],
    vtree: VtreeFile = None,
    timeout: Timeout = None,
) -> None:
    """Draw the circuit of a constraint, or a summary of a large one.

    Example: semprola draw "a -> b | c" picture.svg
    """
    if out.suffix.lower() not in (".svg", ".png", ".dot"):
        raise FormatError(f"{out}: a picture is an .svg, .png or .dot file")
    _circuit_of(source, vtree, timeout).draw(out)
    print(f"written to {out}")


def _write(circuit: Circuit, path: Path) -> None:
    """Write a circuit in the format of the path's suffix."""
    suffix = path.suffix.lower()
    if suffix == ".sp":
        circuit.save(path)
    elif suffix in (".nnf", ".d4"):
        circuit.write_nnf(path, "d4" if suffix == ".d4" else "c2d")
    elif suffix == ".sdd":
        circuit.write_sdd(path, path.with_suffix(".vtree"))
    elif suffix in (".dot", ".svg", ".png"):
        circuit.draw(path)
    else:
        raise FormatError(f"{path}: unknown format; give a name that ends in .sp, .nnf, .d4, .sdd, .dot, .svg or .png")


def _tell_properties(result: dict[str, Any]) -> None:
    """The properties of a circuit, and one line per row that breaks it."""
    why = result.pop("why", [])
    result.pop("first broken", None)
    emit(result, False)
    for reason in why:
        print(f"  {reason}")
    if len(why) < result.get("broken", 0):
        print(f"  … and {result['broken'] - len(why):,} more")


def _circuit_of(source: str, vtree: Path | None, timeout: float | None) -> Circuit:
    """The circuit in a file, or the compiled constraint."""
    from semprola.circuit import Circuit
    from semprola.compiler import compile as compile_constraint
    from semprola.compiler.sources import as_constraint

    constraint = as_constraint(source, vtree)
    if isinstance(constraint, Circuit):
        return constraint
    return compile_constraint(constraint, timeout=timeout, progress=True)


def _told(circuit: Circuit, verbose: bool) -> list[str]:
    """What `compile` says."""
    info = circuit.info
    variables = [count(circuit.num_labels, "label")]
    if circuit.given:
        variables.append(count(len(circuit.given), "input"))
    lines = [
        f"{count(circuit.model_count(), 'model')} over {listed(variables)}",
        f"a circuit of {count(circuit.num_nodes, 'node')} and {count(circuit.num_edges, 'edge')}",
    ]
    if "backend" in info:
        time = f" in {info['seconds']:.2g} s" if "seconds" in info else ""
        lines.append(f"compiled{time} (back end: {info['backend']})")
    if verbose and "reason" in info:
        lines.append(f"reason: {info['reason']}")
    return lines


def _summary(circuit: Circuit) -> dict[str, Any]:
    """What `compile` says to machines."""
    from semprola.cli.weights import log10

    models = circuit.model_count()
    return {
        "labels": circuit.num_labels,
        "given": len(circuit.given),
        "nodes": circuit.num_nodes,
        "edges": circuit.num_edges,
        "models": models,
        "log10 of models": log10(models),
        **{name: circuit.info[name] for name in ("backend", "reason", "seconds") if name in circuit.info},
    }
