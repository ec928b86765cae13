"""What people do with rules before a layer: read them, review them, count their models."""

from semprola.compiler.models import model_count
from semprola.logic import from_sympy
from semprola.rules.findings import Redundant, Review
from semprola.rules.listing import Rule
from semprola.rules.logic_programs import Head, LogicProgram, from_problog
from semprola.rules.reading import read
from semprola.rules.reviewing import review
from semprola.rules.rows import BrokenRow, RowReview, RuleUse
from semprola.rules.shortcuts import Shortcuts, shortcuts

__all__ = [
    "BrokenRow",
    "Head",
    "LogicProgram",
    "Redundant",
    "Review",
    "RowReview",
    "Rule",
    "RuleUse",
    "Shortcuts",
    "from_problog",
    "from_sympy",
    "model_count",
    "read",
    "review",
    "shortcuts",
]
