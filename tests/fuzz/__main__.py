"""``python -m tests.fuzz --minutes 5 --seed 1``: exit status 0 (clean), 1 (a fault was found) or 2 (bad use)."""

from __future__ import annotations

import argparse
import itertools
import os
import sys
import tempfile
import time
import warnings
from dataclasses import replace

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("XDG_CACHE_HOME", tempfile.mkdtemp(prefix="semprola-fuzz-"))  # never the user's own cache

import torch

from . import campaign as work
from .shrinking import shrink


def main() -> int:
    args = _arguments()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore", UserWarning)  # of hierarchies that look upside down
    numbers = itertools.count() if args.case is None else iter([args.case])
    began, cpu = time.monotonic(), time.process_time()
    until = began + 60 * args.minutes

    def report(failure: work.Failure) -> None:
        left = max(5.0, min(args.shrink, until - time.monotonic() + 10))
        small = shrink(failure.case, lambda case: work.still_fails(case, failure.kind), seconds=left)
        errors = [e for name, e in work.run(small, only=failure.check) if (name, type(e).__name__) == failure.kind]
        shown = replace(failure, case=small, error=errors[0] if errors else failure.error)
        again = f"python -m tests.fuzz --seed {args.seed} --case {failure.number}"
        print(f"\nFault after {time.monotonic() - began:.0f} s, case {failure.number}: {failure.check}\n")
        print(work.program(shown), f"# all of it: {again}\n", sep="\n", flush=True)

    tally = work.campaign(args.seed, numbers, until, 1.0 if args.case is not None else args.share, report)
    for engine in sorted(tally.cases):
        print(f"{engine}: {tally.cases[engine]:,} cases, {tally.checks[engine]:,} checks")
    found = f"{len(tally.failures)} kinds of faults in {sum(tally.seen.values())} checks" if tally.seen else "no faults"
    minutes = (time.process_time() - cpu) / 60
    print(f"{len(tally.constraints):,} constraints, {minutes:.1f} CPU minutes, seed {args.seed}: {found}")
    return 1 if tally.failures else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m tests.fuzz", description="Attack the library with random cases.")
    parser.add_argument("--minutes", type=float, default=5.0, help="how long to look for faults")
    parser.add_argument("--seed", type=int, default=None, help="another seed gives other cases; by default a new one")
    parser.add_argument("--case", type=int, help="run only the case of this number, with all checks")
    parser.add_argument("--share", type=float, default=0.5, help="fraction of the rarer checks that a case is put to")
    parser.add_argument("--shrink", type=float, default=20.0, help="seconds to make a failing case smaller")
    args = parser.parse_args()
    if not args.minutes > 0 or not 0 <= args.share <= 1:
        parser.error("--minutes must be positive, --share from 0 to 1")
    if args.seed is None:
        args.seed = int(time.time())
    return args


if __name__ == "__main__":
    sys.exit(main())
