"""Time and peak memory of a training step against the number of edges, each measured in its own process."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from typing import Any


def measure(edges: int, batch: int) -> dict[str, Any]:
    """Milliseconds of log Z with its gradient, and the peak memory of the process.

    Args:
        edges: approximate number of edges.
        batch: number of columns evaluated at once.
    """
    command = [sys.executable, "-m", "benchmarks.growth", str(edges), str(batch)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
        return {"wanted": edges, "batch": batch, "unable": reason}
    result: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return {"wanted": edges, **result}


def _measure_here(edges: int, batch: int) -> dict[str, Any]:
    import torch

    from benchmarks.cases import band
    from semprola.engine import Plan, log_value

    torch.set_num_threads(1)
    baseline = _peak_megabytes()
    plan = Plan(band(edges))
    leaves = torch.randn((plan.num_leaves, batch)).requires_grad_()
    times = []
    for _ in range(3 if edges > 10**6 else 7):
        started = time.process_time()
        torch.autograd.grad(log_value(plan, None, leaves).sum(), leaves)
        times.append(time.process_time() - started)
    peak = _peak_megabytes()
    return {
        "edges": plan.num_edges,
        "batch": batch,
        "cpu_ms": 1e3 * statistics.median(times),
        "megabytes": peak,
        "grown_megabytes": None if peak is None or baseline is None else peak - baseline,
    }


def _peak_megabytes() -> float | None:
    try:
        # not from getrusage, whose value is inherited from the parent process
        with open("/proc/self/status", encoding="utf-8") as lines:
            return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))
    except (OSError, StopIteration):
        pass
    try:
        import resource
    except ImportError:
        return None  # not on Windows
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**20


if __name__ == "__main__":
    print(json.dumps(_measure_here(int(sys.argv[1]), int(sys.argv[2]))))
