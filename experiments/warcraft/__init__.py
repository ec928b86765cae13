"""Least-cost paths on terrain maps, the paper's hardest task: `python -m experiments warcraft`."""
