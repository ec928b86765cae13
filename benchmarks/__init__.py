"""Side-by-side timings against peers, run from a checkout: `make bench`, `python -m benchmarks.engine --help`."""
