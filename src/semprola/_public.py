"""All public names, in one place; `semprola` loads this file on the first use of any of them."""

import semprola.baselines as baselines
import semprola.comparison as comparison
import semprola.constraints as constraints
import semprola.distributions as distributions
import semprola.engine as engine
import semprola.errors as errors
import semprola.logic as logic
import semprola.losses as losses
import semprola.nn as nn
import semprola.rules as rules
import semprola.saving as saving
import semprola.sequences as sequences
import semprola.training as training
from semprola._version import __version__
from semprola.circuit import Circuit
from semprola.circuit.nnf_files import read_nnf
from semprola.circuit.sdd_files import read_sdd
from semprola.compiler import compile
from semprola.compiler.splitting import split
from semprola.constraints import Categorical, Integer
from semprola.distributions import violations
from semprola.errors import (
    CompilationBudgetError,
    FormatError,
    LabelError,
    ParseError,
    SemprolaError,
    UnsatisfiableError,
)
from semprola.logic import (
    And,
    Bool,
    Bools,
    Formula,
    Iff,
    Implies,
    Not,
    Or,
    Xor,
    at_least,
    at_most,
    exactly,
    from_dimacs,
    one_hot,
    parse,
)
from semprola.nn import SPL, ConstraintLayer, ProductSPL, constrain
from semprola.saving import load, save
from semprola.sequences import SequenceSPL

__all__ = [
    "SPL",
    "And",
    "Bool",
    "Bools",
    "Categorical",
    "Circuit",
    "CompilationBudgetError",
    "ConstraintLayer",
    "FormatError",
    "Formula",
    "Iff",
    "Implies",
    "Integer",
    "LabelError",
    "Not",
    "Or",
    "ParseError",
    "ProductSPL",
    "SemprolaError",
    "SequenceSPL",
    "UnsatisfiableError",
    "Xor",
    "__version__",
    "at_least",
    "at_most",
    "baselines",
    "comparison",
    "compile",
    "constrain",
    "constraints",
    "distributions",
    "engine",
    "errors",
    "exactly",
    "from_dimacs",
    "load",
    "logic",
    "losses",
    "nn",
    "one_hot",
    "parse",
    "read_nnf",
    "read_sdd",
    "rules",
    "save",
    "saving",
    "sequences",
    "split",
    "training",
    "violations",
]

MOVED = {
    name: f"semprola.{place}.{name}"
    for place, names in {
        "comparison": ("compare_methods",),
        "compiler": ("Progress",),
        "distributions": (
            "CompatibleDistribution", "MixtureDistribution", "ProductDistribution", "SPLDistribution",
            "Violation", "mixture",
        ),
        "engine": ("get_engine", "set_engine"),
        "errors": ("IntractableError", "PropertyError", "ViolationError"),
        "logic": ("FALSE", "TRUE", "Predicate", "Variable", "exists", "forall", "write_dimacs"),
        "rules": ("from_sympy",),
        "saving": ("Pretrained",),
        "sequences": ("SequenceDistribution",),
        "training": ("calibrate",),
    }.items()
    for name in names
} | {"count": "semprola.rules.model_count", "weighted_count": "semprola.Circuit.weighted_count"}  # fmt: skip
"""Names of version 0.1 that have another place now; they go with the next release."""
