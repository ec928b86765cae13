"""Size and speed of every family, compared with general tools that can do the same.

Each entry runs in its own process, because some tools end the process when memory runs out. Memory and processor time
(so that other work on the machine does not count) are limited. If a tool fails at one size, larger ones are not tried.
Writes results/compile_families.json and the table in docs/compile.md.

    python -m benchmarks.compile_families [--seconds 10] [--peers PYTHON] [--only paths]

PYTHON is an interpreter with graphillion (extra `bench`); without it, that column stays empty.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import os
import random
import resource
import signal
import subprocess
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "results" / "compile_families.json"
PAGE = ROOT / "docs" / "compile.md"
MEMORY = 6 << 30
OUT_OF_MEMORY = 77


@dataclass(frozen=True)
class Case:
    """A constraint in two forms: as a family, and as plain formulas for tools without families.

    Args:
        family: the family.
        size: the size, as shown in the table.
        build: makes the family.
        plain: makes formulas, if a general tool can be used at all.
        graph: the arguments for graphillion: kind, side of the grid.
    """

    family: str
    size: str
    build: Callable[[], Any]
    plain: Callable[[], Any] | None = None
    graph: tuple[str, int] | None = None


def cases() -> list[Case]:
    """All of them, small ones first in each family."""
    import networkx as nx

    import semprola as sp

    C = sp.constraints

    def names(n: int) -> list[str]:
        return [f"x{i}" for i in range(n)]

    def matrix(n: int) -> Any:
        lines = [[f"y[{i},{j}]" for j in range(n)] for i in range(n)]
        return sp.And([sp.one_hot(line) for line in (*lines, *zip(*lines, strict=True))])

    def edges(tree: list[int]) -> list[tuple[str, str]]:
        return [(f"n{i}", f"n{p}") for i, p in enumerate(tree) if p >= 0]

    def corner(n: int, most: int | None = None) -> Any:
        return C.simple_paths(nx.grid_2d_graph(n, n), source=(0, 0), target=(n - 1, n - 1), max_length=most)

    made = [
        Case("permutation", f"{n} × {n}", lambda n=n: C.permutation(n), lambda n=n: matrix(n))
        for n in (6, 8, 10, 12, 14)
    ]
    made += [
        Case(
            "cardinality",
            f"{k} of {n}",
            lambda n=n, k=k: C.cardinality(names(n), at_least=k, at_most=k),
            lambda n=n, k=k: sp.exactly(k, names(n)),
        )
        for n, k in ((100, 20), (300, 100), (1000, 500))
    ]
    made += [
        Case(
            "hierarchy, tree",
            f"{n} labels",
            lambda n=n: C.hierarchy(edges(random_tree(n))),
            lambda n=n: sp.And([sp.Bool(a) >> sp.Bool(b) for a, b in edges(random_tree(n))]),
        )
        for n in (100, 500, 4000)
    ]
    made += [
        Case(
            "hierarchy, several parents",
            f"{n} labels",
            lambda n=n: C.hierarchy(ontology(n)),
            lambda n=n: sp.And([sp.Bool(a) >> sp.Bool(b) for a, b in ontology(n)]),
        )
        for n in (500, 4000)
    ]
    made += [Case("simple paths", f"{n} × {n}", lambda n=n: corner(n), None, ("paths", n)) for n in (5, 7, 8)]
    made += [
        Case("simple paths", f"12 × 12, ≤ {k} edges", lambda k=k: corner(12, k), None, ("short", k)) for k in (28, 32)
    ]
    made += [
        Case("cycles", f"{n} × {n}", lambda n=n: C.cycles(nx.grid_2d_graph(n, n)), None, ("cycles", n)) for n in (5, 7)
    ]
    made += [
        Case("spanning trees", f"{n} × {n}", lambda n=n: C.spanning_trees(nx.grid_2d_graph(n, n)), None, ("trees", n))
        for n in (5, 6)
    ]
    made += [
        Case(
            "perfect matchings",
            f"{n} × {n}",
            lambda n=n: C.matchings(nx.grid_2d_graph(n, n), perfect=True),
            lambda n=n: one_edge_a_node(n),
            ("matchings", n),
        )
        for n in (6, 10)
    ]
    made += [
        Case("linear", f"{n} labels", lambda n=n: C.linear(coefficients(n), "<=", 25 * n), None) for n in (50, 200)
    ]
    made += [
        Case("table", f"{r:,} rows of 30", lambda r=r: C.table(bits(r), labels=names(30)), lambda r=r: rows(r))
        for r in (300, 100_000)
    ]
    made += [
        Case("regular words", f"length {n}", lambda n=n: C.regex("(a|b|c)*abc(a|b|c)*", length=n, alphabet="abc"), None)
        for n in (100, 1000)
    ]
    return made


def random_tree(n: int) -> list[int]:
    rng = random.Random(0)
    return [-1, *(rng.randrange(i) for i in range(1, n))]


def ontology(n: int) -> list[tuple[str, str]]:
    """A tree in which every tenth label has a second parent nearby, as in the Gene Ontology."""
    rng = random.Random(0)
    parent, children, edges = [-1], [[]], []
    for i in range(1, n):
        above = min(int(rng.expovariate(1) * i / 6), i - 1)
        parent.append(above)
        children.append([])
        children[above].append(i)
        edges.append((f"n{i}", f"n{above}"))
        if rng.random() < 0.1 and parent[above] >= 0:
            other = rng.choice(children[parent[above]])
            if other not in (i, above):
                edges.append((f"n{i}", f"n{other}"))
    return edges


def coefficients(n: int) -> dict[str, int]:
    rng = random.Random(0)
    return {f"x{i}": rng.randint(1, 100) for i in range(n)}


def bits(count: int) -> Any:
    import numpy as np

    return np.random.default_rng(0).integers(0, 2, (count, 30))


def rows(count: int) -> Any:
    import semprola as sp

    atoms = [sp.Bool(f"x{i}") for i in range(30)]
    return sp.Or(
        [sp.And([a if bit else ~a for a, bit in zip(atoms, row, strict=True)]) for row in bits(count).tolist()]
    )


def one_edge_a_node(n: int) -> Any:
    import networkx as nx

    import semprola as sp

    graph = nx.grid_2d_graph(n, n)
    label = {frozenset(edge): f"{edge[0]}-{edge[1]}" for edge in graph.edges}
    return sp.And([sp.one_hot([label[frozenset(edge)] for edge in graph.edges(node)]) for node in graph])


# one measurement, in its own process ---------------------------------------------------------------------------------


def measure(tool: str, number: int) -> dict[str, Any]:
    """Nodes, seconds and models of one case by one tool."""
    import semprola as sp

    case = cases()[number]
    began = time.process_time()
    if tool == "semprola":
        circuit = sp.compile(case.build(), cache=False)
        seconds = time.process_time() - began
        nodes = circuit.info.get("diagram_nodes", circuit.num_nodes)
        return {"nodes": nodes, "edges": circuit.num_edges, "seconds": seconds, "models": str(circuit.model_count())}
    if case.plain is None:
        raise ValueError(f"{case.family} has no plain form")
    return pysdd(case.plain()) if tool == "pysdd" else oxidd(case.plain())


def pysdd(formula: Any) -> dict[str, Any]:
    """PySDD as its documentation suggests: a balanced vtree over the variables in order, with dynamic minimisation."""
    from pysdd.sdd import SddManager

    manager = SddManager(var_count=len(formula.labels), auto_gc_and_minimize=True)

    def keep(node: Any) -> Any:
        node.ref()
        return node

    variables = [manager.literal(i + 1) for i in range(len(formula.labels))]
    began = time.process_time()
    root = built(formula, variables, manager.true(), manager.false(), keep)
    seconds = time.process_time() - began
    return {"nodes": root.count(), "edges": root.size(), "seconds": seconds, "models": str(root.global_model_count())}


def oxidd(formula: Any) -> dict[str, Any]:
    """A BDD over the variables in their own order, which is a good one for these constraints."""
    from oxidd.bdd import BDDManager

    manager = BDDManager(1 << 26, 1 << 20, 1)
    count = len(formula.labels)
    manager.add_vars(count)
    began = time.process_time()
    variables = [manager.var(i) for i in range(count)]
    root = built(formula, variables, manager.true(), manager.false(), lambda node: node)
    seconds = time.process_time() - began
    return {"nodes": root.node_count(), "seconds": seconds, "models": str(root.sat_count(count))}


def built(formula: Any, variables: Any, true: Any, false: Any, keep: Callable[[Any], Any]) -> Any:
    """A formula built with operations that all decision-diagram libraries have."""
    from semprola.logic import Kind

    index = {name: i for i, name in enumerate(formula.labels)}
    done: dict[Any, Any] = {}
    for node in formula.nodes():
        parts = [done[arg] for arg in node.args]
        if node.kind is Kind.ATOM:
            done[node] = variables[index[node.name]]
        elif node.kind is Kind.NOT:
            done[node] = keep(~parts[0])
        elif node.kind is Kind.IMPLIES:
            done[node] = keep(~parts[0] | parts[1])
        elif node.kind is Kind.CARDINALITY:
            lo, hi = node.bounds
            states = [true if lo <= k <= hi else false for k in range(len(parts) + 1)]
            for part in reversed(parts):
                states = [keep((part & more) | (~part & same)) for same, more in itertools.pairwise(states)]
            done[node] = states[0]
        else:
            # join pairwise, so that intermediate diagrams stay small
            while len(parts) > 1:
                pairs = [
                    keep(a & b if node.kind is Kind.AND else a | b)
                    for a, b in zip(parts[::2], parts[1::2], strict=False)
                ]
                parts = pairs + parts[2 * len(pairs) :]
            done[node] = parts[0]
    return done[formula]


GRAPHILLION = """
import itertools, json, os, resource, sys, time
resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
most = int(os.environ["BENCHMARK_SECONDS"])
resource.setrlimit(resource.RLIMIT_CPU, (most, most))
from graphillion import GraphSet as G
kind, n = sys.argv[1], int(sys.argv[2])
side = 12 if kind == "short" else n
cells = list(itertools.product(range(side), repeat=2))
near = [((r, c), (r + a, c + b)) for r, c in cells for a, b in ((0, 1), (1, 0)) if r + a < side and c + b < side]
began = time.process_time()
G.set_universe(near)
ends = (0, 0), (side - 1, side - 1)
if kind == "paths":
    found = G.paths(*ends)
elif kind == "short":
    degrees = {v: (1 if v in ends else range(0, 3, 2)) for v in cells}
    found = G.graphs(vertex_groups=[list(ends)], degree_constraints=degrees, num_edges=range(n + 1), no_loop=True)
elif kind == "cycles":
    found = G.cycles()
elif kind == "trees":
    found = G.trees(is_spanning=True)
else:
    found = G.graphs(degree_constraints={v: 1 for v in cells})
seconds = time.process_time() - began
nodes = found.dumps().count(chr(10))
print(json.dumps({"nodes": nodes, "seconds": seconds, "models": str(found.len())}))
""".replace("BYTES", str(MEMORY))


def forked(tool: str, number: int, seconds: float) -> dict[str, Any]:
    """`measure` in a fork of this process, which need not import anything again."""
    incoming, outgoing = os.pipe()
    child = os.fork()
    if child == 0:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(seconds) + 1,) * 2)
        code = 1
        try:
            os.write(outgoing, json.dumps(measure(tool, number)).encode())
            code = 0
        except MemoryError:
            code = OUT_OF_MEMORY
        except Exception:
            traceback.print_exc()
        os._exit(code)
    os.close(outgoing)
    with open(incoming, "rb") as pipe:
        answer = pipe.read()
    return judged(answer, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), seconds)


def run(command: list[str], seconds: float) -> dict[str, Any]:
    """The last line that a process prints, as JSON; or why there is none."""
    environment = {**os.environ, "BENCHMARK_SECONDS": str(math.ceil(seconds) + 1)}
    done = subprocess.run(command, capture_output=True, env=environment)
    code = OUT_OF_MEMORY if b"emory" in done.stderr or b"bad_alloc" in done.stderr else done.returncode
    if code == 1:
        print(done.stderr.decode())
    return judged(done.stdout.strip().rpartition(b"\n")[2], code, seconds)


def judged(answer: bytes, code: int, seconds: float) -> dict[str, Any]:
    try:
        result: dict[str, Any] = json.loads(answer)
    except ValueError:
        if code == 1:
            raise SystemExit("a benchmark failed for a reason of its own: see above") from None
        slow = code in (-signal.SIGXCPU, -signal.SIGKILL)
        return {"failed": f"> {seconds:g} s" if slow else "memory"}
    return result if result["seconds"] <= seconds else {"failed": f"> {seconds:g} s"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--peers", help="a Python that has graphillion")
    parser.add_argument("--only", default="", help="families whose name contains this")
    options = parser.parse_args()
    from experiments.provenance import provenance, write_json

    entries = []
    failures: dict[tuple[str, str], dict[str, Any]] = {}
    for number, case in enumerate(cases()):
        if options.only not in case.family:
            continue
        entry: dict[str, Any] = {"family": case.family, "size": case.size}
        tools = ["semprola", *(["pysdd", "oxidd"] if case.plain else [])]
        if options.peers and case.graph:
            tools.append("graphillion")
        for tool in tools:
            if (case.family, tool) in failures:
                result = failures[case.family, tool]
            elif tool == "graphillion":
                result = run([options.peers, "-c", GRAPHILLION, *map(str, case.graph or ())], options.seconds)
            else:
                result = forked(tool, number, options.seconds)
            entry[tool] = result
            if "failed" in result:
                failures[case.family, tool] = result
        # PySDD's own count overflows, so it is not compared
        counts = {entry.get(tool, {}).get("models") for tool in ("semprola", "oxidd", "graphillion")} - {None}
        if len(counts) > 1:
            raise SystemExit(f"the tools disagree: {entry}")
        entries.append(entry)
        print(json.dumps(entry, ensure_ascii=False), flush=True)
    if options.only:
        return
    write_json(RESULTS, {"provenance": provenance(), "seconds": options.seconds, "entries": entries})
    update_page()


# the table -----------------------------------------------------------------------------------------------------------


def update_page() -> None:
    """Put the table of the results into the page."""
    from benchmarks.pages import put_between  # imported here, because other interpreters run this file on its own

    put_between(PAGE, "families", table(json.loads(RESULTS.read_text())))


def table(results: dict[str, Any]) -> str:
    """The results as a table in Markdown: nodes and seconds of each tool."""
    lines = [
        "| family | size | models | semprola | PySDD | oxidd (BDD) | Graphillion |",
        "|---|---|---|---|---|---|---|",
    ]
    for entry in results["entries"]:
        tools = [shown(entry.get(tool, {})) for tool in ("semprola", "pysdd", "oxidd", "graphillion")]
        models = int(entry["semprola"].get("models", 0))
        count = f"{models:,}" if models < 10**9 else f"10^{len(str(models)) - 1}"
        lines.append(f"| {entry['family']} | {entry['size']} | {count} | {' | '.join(tools)} |")
    return "\n".join(lines) + "\n"


def shown(result: dict[str, Any]) -> str:
    if not result:
        return "–"
    if "failed" in result:
        return str(result["failed"])
    return f"{result['nodes']:,} nodes, {result['seconds']:.2f} s"


if __name__ == "__main__":
    main()
