"""What one pass would cost on a GPU, counted from the plans and not measured: `python -m benchmarks.gpu_cost`.

For the torch back end, the operators of a pass are recorded while it runs on CPU. For the Triton back end, launches are
those of its layout. Both count every number that is read from a row or written to it, as if no cache kept anything.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Any

import torch
import typer
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from benchmarks import report
from benchmarks.cases import cases
from benchmarks.records import keep
from benchmarks.report import gpu_table as table
from experiments.provenance import provenance
from semprola.cli.app import reporting_errors
from semprola.engine import CircuitPlans, Plan
from semprola.engine.backends.torch import TorchBackend
from semprola.engine.backends.triton_layout import Layout, tile_of

LAUNCH = 5e-6
"""Seconds per launch."""
BANDWIDTH = 1e12
"""Bytes per second."""
LATENCY = 0.5e-6
"""Seconds until a number that was asked for is there; a program that walks through levels waits for each."""
_BYTES = 4
"""Of a number in float32."""


def estimate(
    batch: Annotated[int, typer.Option(help="Rows of a batch.", min=1)] = 128,
    circuits: Annotated[str, typer.Option(help="Names of circuits, comma-separated; all by default.")] = "",
    out: Annotated[Path, typer.Option(help="Folder for gpu_cost.json.")] = Path("results"),
    docs: Annotated[Path | None, typer.Option(help="Page to write again, from bench.json and this.")] = None,
) -> None:
    """Count launches and bytes of log Z with its gradient, for the torch and the Triton back end.

    Example: python -m benchmarks.gpu_cost --circuits permutation-12
    """
    chosen = cases([c.strip() for c in circuits.split(",") if c.strip()] or None)
    rows = [{"circuit": case.name, **costs(CircuitPlans(case.make()).constraint, batch)} for case in chosen]
    assumed = {"batch": batch, "launch_s": LAUNCH, "bytes_per_s": BANDWIDTH, "latency_s": LATENCY}
    result = {"provenance": provenance(), "assumed": assumed, "rows": rows}
    kept = keep(out / "gpu_cost.json", result)
    typer.echo(table(result))
    if kept and docs is not None:
        report.write_page(docs, out)


def costs(plan: Plan, batch: int) -> dict[str, Any]:
    """Launches, megabytes and computed milliseconds of one pass up and down, by back end."""
    layout = Layout.of(plan, torch.device("cpu"))
    size = {"edges": plan.num_edges, "steps": layout.num_steps - 1}
    return size | {"torch": _torch(plan, batch), "triton": _triton(plan, layout, batch)}


def _torch(plan: Plan, batch: int) -> dict[str, Any]:
    leaves = torch.zeros((plan.num_leaves, batch))
    with _Recorder() as recorder:
        TorchBackend().evaluate(plan, None, leaves, flows=True)
    return _priced(recorder.launches, recorder.numbers, 0.0)


class _Recorder(TorchDispatchMode):
    """Counts operators that compute something, and the numbers that they read and write."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.launches = self.numbers = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        name = func.overloadpacket.__name__
        if not (func.is_view or name.startswith(("empty", "new_empty", "detach", "_unsafe_view"))):
            self.launches += 1
            written = _size(result) if not name.endswith("out") else 0
            gathers = name in ("index_select", "_embedding_bag_forward_only", "_embedding_bag")
            columns = result[0].shape[-1] if isinstance(result, tuple) else result.shape[-1] if result.dim() else 1
            index = next((t for t in tree_leaves(args) if isinstance(t, torch.Tensor) and t.dtype == torch.int64), None)
            read = index.numel() * columns if gathers and index is not None else _size((args, kwargs))
            self.numbers += written + read
        return result


def _size(values: Any) -> int:
    return sum(t.numel() for t in tree_leaves(values) if isinstance(t, torch.Tensor) and t.is_floating_point())


def _triton(plan: Plan, layout: Layout, batch: int) -> dict[str, Any]:
    sums, _ = tile_of(batch)
    up, down = layout.segments(sums), layout.segments_down(sums)
    factors, parents = len(layout.factors), len(layout.parents)
    rows = plan.num_rows
    # up: factors read, sums written; down: factors, parents' flows and values read, flows and literals written
    numbers = (factors + rows + factors + parents + rows + plan.num_edges + plan.num_leaves) * batch
    waits = 0
    for segments, is_down in ((up, False), (down, True)):
        for part in segments:
            for step in range(part.first, part.last):
                turns = math.ceil(layout.sums[step] / sums / part.programs)
                above = 1 + int(layout.table[step, 5]) if is_down else 0
                waits += turns * (layout.waits[step] + above)
    copies = 2  # of the literals into the values, and of the root's values
    return _priced(len(up) + len(down) + copies, numbers, waits * LATENCY)


def _priced(launches: int, numbers: int, waiting: float) -> dict[str, Any]:
    seconds = launches * LAUNCH + numbers * _BYTES / BANDWIDTH + waiting
    return {"launches": launches, "megabytes": numbers * _BYTES / 1e6, "ms": seconds * 1e3}


if __name__ == "__main__":
    typer.run(reporting_errors(estimate))
