"""What people do with rules before a layer: read them, review them, count their models."""

from semprola.compiler.models import model_count
from semprola.logic import from_sympy
from semprola.rules.comparing import Comparison, Witness, compare
from semprola.rules.explaining import Consequence, Explanation, explain
from semprola.rules.findings import Redundant, Review
from semprola.rules.listing import Rule
from semprola.rules.reading import read
from semprola.rules.reviewing import review
from semprola.rules.rows import BrokenRow, RowReview, RuleUse

__all__ = [
    "BrokenRow",
    "Comparison",
    "Consequence",
    "Explanation",
    "Redundant",
    "Review",
    "RowReview",
    "Rule",
    "RuleUse",
    "Witness",
    "compare",
    "explain",
    "from_sympy",
    "model_count",
    "read",
    "review",
]
