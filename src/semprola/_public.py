"""All public names, in one place; `semprola` loads this file on the first use of any of them."""

from typing import TYPE_CHECKING

import semprola.baselines as baselines
import semprola.comparison as comparison
import semprola.constraints as constraints
import semprola.losses as losses
import semprola.rules as rules
import semprola.training as training
from semprola._version import __version__
from semprola.circuit import Circuit
from semprola.circuit.nnf_files import read_nnf
from semprola.circuit.sdd_files import read_sdd
from semprola.circuit.weighted import weighted_count
from semprola.comparison import compare_methods
from semprola.compiler import Progress, compile
from semprola.compiler.models import count
from semprola.compiler.splitting import Split, split
from semprola.constraints import Categorical, Integer
from semprola.distributions import (
    CompatibleDistribution,
    EncodedStates,
    MixtureDistribution,
    PoolDistribution,
    ProductDistribution,
    SequenceDistribution,
    SPLDistribution,
    Violation,
    mixture,
    violations,
)
from semprola.engine import get_engine, set_engine
from semprola.errors import (
    CompilationBudgetError,
    FormatError,
    IntractableError,
    LabelError,
    ParseError,
    PropertyError,
    SemprolaError,
    UnsatisfiableError,
    ViolationError,
)
from semprola.logic import (
    FALSE,
    TRUE,
    And,
    Bool,
    Bools,
    Formula,
    Iff,
    Implies,
    Not,
    Or,
    Predicate,
    Variable,
    Xor,
    at_least,
    at_most,
    exactly,
    exists,
    forall,
    from_dimacs,
    from_sympy,
    one_hot,
    parse,
    write_dimacs,
)
from semprola.nn import SPL, ConstraintLayer, ProductSPL, SequenceSPL, constrain
from semprola.saving import Pretrained, load, save
from semprola.training import calibrate

if TYPE_CHECKING:
    # the package itself is callable, which type checkers cannot see
    from semprola.engine.backends import engine as engine
else:
    import semprola.engine as engine

__all__ = [
    "FALSE",
    "SPL",
    "TRUE",
    "And",
    "Bool",
    "Bools",
    "Categorical",
    "Circuit",
    "CompatibleDistribution",
    "CompilationBudgetError",
    "ConstraintLayer",
    "EncodedStates",
    "FormatError",
    "Formula",
    "Iff",
    "Implies",
    "Integer",
    "IntractableError",
    "LabelError",
    "MixtureDistribution",
    "Not",
    "Or",
    "ParseError",
    "PoolDistribution",
    "Predicate",
    "Pretrained",
    "ProductDistribution",
    "ProductSPL",
    "Progress",
    "PropertyError",
    "SPLDistribution",
    "SemprolaError",
    "SequenceDistribution",
    "SequenceSPL",
    "Split",
    "UnsatisfiableError",
    "Variable",
    "Violation",
    "ViolationError",
    "Xor",
    "__version__",
    "at_least",
    "at_most",
    "baselines",
    "calibrate",
    "compare_methods",
    "comparison",
    "compile",
    "constrain",
    "constraints",
    "count",
    "engine",
    "exactly",
    "exists",
    "forall",
    "from_dimacs",
    "from_sympy",
    "get_engine",
    "load",
    "losses",
    "mixture",
    "one_hot",
    "parse",
    "read_nnf",
    "read_sdd",
    "rules",
    "save",
    "set_engine",
    "split",
    "training",
    "violations",
    "weighted_count",
    "write_dimacs",
]
