"""Hierarchies of the Gene Ontology, which are DAGs: compiling them, and a training step of a layer with them.

Each phase has its own process, whose processor seconds and peak memory are recorded. The number of models is compared
with that of another compiler, which gets the implications as clauses and knows nothing about hierarchies; with --peers,
also with ganak. Writes results/compile_dags.json and the table in docs/compile.md.

    python -m benchmarks.compile_dags --data FOLDER [--only eisen] [--batch 32] [--features 64] [--peers PYTHON]

FOLDER holds *_GO.train.arff.xz, in which the class attribute lists the edges `parent/child` of a DAG. Earlier
measurements are kept.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import lzma
import math
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.pages import put_between

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "results" / "compile_dags.json"
PAGE = ROOT / "docs" / "compile.md"
PHASES = ("compile", "layer", "check")
CHECK_SECONDS = 1200.0

GANAK = """
import json, sys
from pyganak import Counter
clauses = json.load(open(sys.argv[1]))
counter = Counter()
counter.new_vars(max(abs(x) for clause in clauses for x in clause))
counter.add_clauses(clauses)
print(counter.count())
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--only", default="", help="files whose name contains this")
    parser.add_argument("--phases", nargs="*", default=PHASES, choices=PHASES, help="measure these, keep the others")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--features", type=int, default=64)
    parser.add_argument("--peers", help="a Python that has pyganak")
    parser.add_argument("--phase", help=argparse.SUPPRESS)
    parser.add_argument("--circuit", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.phase:
        made = {"compile": compiled, "layer": trained, "check": checked}[options.phase](options)
        print(json.dumps({**made, "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}))
        return
    from experiments.provenance import provenance, write_json

    known = json.loads(RESULTS.read_text())["entries"] if RESULTS.is_file() else {}
    for path in sorted(options.data.glob("*_GO.train.arff.xz")):
        if options.only in path.name:
            entry = known.setdefault(path.name.partition(".")[0], {})
            measure(path, entry, options)
            write_json(RESULTS, {"provenance": provenance(), "batch": options.batch, "entries": known})
    update_page()


def measure(path: Path, entry: dict[str, Any], options: argparse.Namespace) -> None:
    """Run the phases of one hierarchy, each in its own process."""
    with tempfile.TemporaryDirectory() as folder:
        circuit = Path(folder) / "circuit.sp"
        for phase in ("compile", *(name for name in options.phases if name != "compile")):
            command = [sys.executable, "-m", "benchmarks.compile_dags", "--data", str(path), "--phase", phase]
            command += ["--circuit", str(circuit), "--batch", str(options.batch), "--features", str(options.features)]
            if options.peers:
                command += ["--peers", options.peers]
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
            entry[phase] = json.loads(done.stdout.strip().splitlines()[-1])
            print(path.name, phase, json.dumps(entry[phase]), flush=True)


def edges_of(path: Path) -> list[tuple[str, str]]:
    """The edges (child, parent) of a file; the artificial root is left out."""
    with lzma.open(path, "rt", encoding="utf-8") as lines:
        listed = next(line for line in lines if line.lower().startswith("@attribute class"))
    pairs = [pair.split("/") for pair in listed.split("hierarchical", 1)[1].strip().split(",")]
    return [(child, parent) for parent, child in pairs if parent != "root"]


# phases, each in a process of its own ---------------------------------------------------------------------------------


def compiled(options: argparse.Namespace) -> dict[str, Any]:
    """Compile the hierarchy, and keep the circuit for the other phases."""
    import semprola as sp

    edges = edges_of(options.data)
    rule = sp.constraints.hierarchy(edges)
    began = time.process_time()
    circuit = sp.compile(rule, cache=False, progress=False)
    seconds = time.process_time() - began
    circuit.save(options.circuit)
    return {
        "labels": circuit.num_labels,
        "edges of the DAG": len(edges),
        "nodes": circuit.num_nodes,
        "edges": circuit.num_edges,
        "seconds": round(seconds, 2),
    }


def trained(options: argparse.Namespace) -> dict[str, Any]:
    """Make a layer and train it for two steps on label sets that the hierarchy allows."""
    import torch

    import semprola as sp

    torch.set_num_threads(1)
    torch.manual_seed(0)
    circuit = sp.Circuit.load(options.circuit)
    began = time.process_time()
    layer = sp.ProductSPL(options.features, circuit)
    made = time.process_time() - began
    y = rows(circuit.labels, edges_of(options.data), options.batch)
    optimizer = torch.optim.Adam(layer.parameters())
    steps = []
    for _ in range(2):
        began = time.process_time()
        optimizer.zero_grad()
        loss = -layer(torch.randn(options.batch, options.features)).log_prob(y).mean()
        loss.backward()
        optimizer.step()
        steps.append(round(time.process_time() - began, 2))
    if not math.isfinite(float(loss.detach())):
        raise SystemExit("the loss is not finite")
    return {"layer": round(made, 2), "steps": steps, "loss": float(loss.detach())}


def rows(labels: tuple[str, ...], edges: list[tuple[str, str]], count: int) -> Any:
    """Label sets [count, labels] that contain the ancestors of their members."""
    import torch

    above: dict[str, list[str]] = {}
    for child, parent in edges:
        above.setdefault(child, []).append(parent)
    column = {name: v for v, name in enumerate(labels)}
    y = torch.zeros(count, len(labels))
    for row in range(count):
        stack = [labels[(row * 997 + k * 131) % len(labels)] for k in range(3)]
        while stack:
            name = stack.pop()
            y[row, column[name]] = 1
            stack.extend(above.get(name, ()))
    return y


def checked(options: argparse.Namespace) -> dict[str, Any]:
    """Count the models of the circuit, and of the implications by other means."""
    import semprola as sp
    from semprola.logic import Cnf

    count = sp.Circuit.load(options.circuit).model_count()
    edges = edges_of(options.data)
    number: dict[str, int] = {}
    for name in (name for edge in edges for name in edge):
        number.setdefault(name, len(number) + 1)
    clauses = [[-number[child], number[parent]] for child, parent in edges]
    found: dict[str, Any] = {"digits": len(str(count)), "sha256": hashlib.sha256(str(count).encode()).hexdigest()}
    began = time.process_time()
    other = sp.compile(Cnf(len(number), clauses), backend="topdown", cache=False, progress=False)
    found["topdown"] = {
        "nodes": other.num_nodes,
        "edges": other.num_edges,
        "seconds": round(time.process_time() - began, 2),
        "agrees": other.model_count() == count,
    }
    if options.peers:
        found["ganak"] = ganak(options.peers, clauses, count)
    return found


def ganak(python: str, clauses: list[list[int]], count: int) -> dict[str, Any] | None:
    """Whether ganak agrees; None if it takes too long."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(clauses, file)
        file.flush()
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        try:
            done = subprocess.run(
                [python, "-c", GANAK, file.name], stdout=subprocess.PIPE, text=True, timeout=CHECK_SECONDS
            )
        except subprocess.TimeoutExpired:
            return None
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        return None
    return {"seconds": round(after.ru_utime - before.ru_utime, 2), "agrees": int(done.stdout.split()[-1]) == count}


# the table ------------------------------------------------------------------------------------------------------------


def update_page() -> None:
    """Put the results into the page."""
    put_between(PAGE, "dags", table(json.loads(RESULTS.read_text())))


def table(results: dict[str, Any]) -> str:
    """The results in Markdown."""
    batch = results["batch"]
    lines = [
        "Seconds are processor time, and memory is the peak of the whole process. The top-down compiler counts the "
        "models a second time, from the plain implications; it shares no code with the family. "
        "(`python -m benchmarks.compile_dags --data FOLDER`)",
        "",
        "| DAG | labels, edges | nodes, edges of the circuit | compile | `ProductSPL` | training step, batch "
        f"{batch} | memory | models | top-down: nodes, edges | counts agree |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for name, entry in results["entries"].items():
        made, layer, check = entry["compile"], entry.get("layer"), entry.get("check")
        cells = [
            name,
            f"{made['labels']:,}, {made['edges of the DAG']:,}",
            f"{made['nodes']:,}, {made['edges']:,}",
            f"{made['seconds']:.1f} s",
            "" if layer is None else f"{layer['layer']:.1f} s",
            "" if layer is None else f"{layer['steps'][-1]:.1f} s",
            "" if layer is None else f"{layer['peak'] / 1e9:.1f} GB",
            "" if check is None else f"10^{check['digits'] - 1}",
            "" if check is None else f"{check['topdown']['nodes']:,}, {check['topdown']['edges']:,}",
            "" if check is None else _agreement(check),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _agreement(check: dict[str, Any]) -> str:
    said = "yes" if check["topdown"]["agrees"] else "no"
    peer = check.get("ganak")
    return said if peer is None else f"{said}; ganak: {'yes' if peer['agrees'] else 'no'}"


if __name__ == "__main__":
    main()
