"""What people do with rules before a layer: read them from anywhere, review, compare, explain and learn them."""

from semprola.compiler.models import model_count
from semprola.logic import from_sympy
from semprola.rules.comparing import Comparison, Witness, compare
from semprola.rules.cpmpy_models import from_cpmpy
from semprola.rules.explaining import Consequence, Explanation, explain
from semprola.rules.findings import Redundant, Review
from semprola.rules.json_schemas import from_json_schema
from semprola.rules.learning import Learnt, learn
from semprola.rules.learnt import LearntRule
from semprola.rules.listing import Rule
from semprola.rules.logic_programs import Head, LogicProgram, from_problog
from semprola.rules.ontologies.ontology import Axiom, Ontology
from semprola.rules.ontologies.reading import from_obo, from_owl, from_skos, read_ontology
from semprola.rules.pysat_formulas import from_pysat
from semprola.rules.reading import read
from semprola.rules.reviewing import review
from semprola.rules.rows import BrokenRow, RowReview, RuleUse
from semprola.rules.seen_rows import from_rows
from semprola.rules.shortcuts import Shortcuts, shortcuts

__all__ = [
    "Axiom",
    "BrokenRow",
    "Comparison",
    "Consequence",
    "Explanation",
    "Head",
    "Learnt",
    "LearntRule",
    "LogicProgram",
    "Ontology",
    "Redundant",
    "Review",
    "RowReview",
    "Rule",
    "RuleUse",
    "Shortcuts",
    "Witness",
    "compare",
    "explain",
    "from_cpmpy",
    "from_json_schema",
    "from_obo",
    "from_owl",
    "from_problog",
    "from_pysat",
    "from_rows",
    "from_skos",
    "from_sympy",
    "learn",
    "model_count",
    "read",
    "read_ontology",
    "review",
    "shortcuts",
]
