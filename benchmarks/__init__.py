"""Timings side by side with other packages, run from a checkout: `make bench`, `python -m benchmarks.engine --help`."""
