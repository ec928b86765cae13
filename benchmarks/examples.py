"""What the examples print: runs each of them with its defaults and keeps the output, for docs/examples.md.

    python -m benchmarks.examples [--only digit_facts,weak_labels]

The two comparisons write results files of their own (`python examples/compare_digits.py --out FOLDER`).
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path
from typing import Any

from experiments.provenance import provenance, read_json, write_json

FOLDER = Path(__file__).resolve().parent.parent / "examples"
NAMES = sorted(path.stem for path in FOLDER.glob("*.py") if not path.stem.startswith("compare_"))


def main() -> int:
    """Run the examples; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("results/examples.json"))
    parser.add_argument("--only", default=",".join(NAMES), help="comma-separated: examples to run; the others are kept")
    options = parser.parse_args()
    content: dict[str, Any] = read_json(options.out) if options.out.exists() else {"outputs": {}}
    for name in options.only.split(","):
        print(f"examples/{name}.py", flush=True)
        done = subprocess.run([sys.executable, str(FOLDER / f"{name}.py")], capture_output=True, text=True, check=True)
        content["outputs"][name] = done.stdout.splitlines()
        write_json(options.out, {"provenance": provenance(), "outputs": dict(sorted(content["outputs"].items()))})
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
