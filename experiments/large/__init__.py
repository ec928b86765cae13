"""Constraints that do not compile as one circuit: how fast their pools find proven modes."""
