"""Every table of docs/speed.md, from one command: python benchmarks/bench.py (the same as `make bench`).

The work is done by `semprola bench`; see its --help for circuits, batch sizes and rounds.
"""

from __future__ import annotations

import sys

from semprola.cli import main

if __name__ == "__main__":
    sys.argv[1:1] = ["bench", "--docs", "docs/speed.md"]
    main()
