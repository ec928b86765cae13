"""Helpers for error messages."""

from __future__ import annotations


def brief(value: object, width: int = 60) -> str:
    """Return any value as one line of at most ``width`` characters.

    Example:
        >>> brief([1, 2])
        '[1, 2]'
        >>> brief("x" * 1000, width=12)
        "'xxxxxxxx..."
    """
    try:
        text = " ".join(repr(value).split())
    except Exception:  # a foreign repr may fail; so does that of an integer with more than 4,300 digits
        text = f"a value of type {type(value).__name__}"
    return text if len(text) <= width else f"{text[: width - 3]}..."
