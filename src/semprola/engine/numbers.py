"""Numbers with a meaning in log space."""

NEGATIVE_INFINITY = float("-inf")
"""The logarithm of zero: what is impossible stays so, it is never replaced by a large negative number."""
