"""Digit readers trained from sums: MNIST addition with N digits per number."""
