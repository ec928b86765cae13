"""Reasoning shortcuts: pairs of digits whose sums do not tell which digit is which."""
