"""Numbers in words, for reports and messages."""

from __future__ import annotations

import math


def count(number: int, what: str) -> str:
    """A number and what it counts; of a very large one, a few digits."""
    return f"{size(number)} {what}{'' if number == 1 else 's'}"


def size(number: int) -> str:
    """A number as people read it; Python refuses to print one with more than 4,300 digits."""
    if number < 10**15:
        return f"{number:,}"
    digits = math.log10(number)
    return f"about {10 ** (digits % 1):.2f}e+{math.floor(digits)}"
