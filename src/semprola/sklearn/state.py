"""The state of an estimator besides its network, as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from torch import nn

from semprola.circuit import Circuit
from semprola.compiler.splitting import Split
from semprola.errors import SemprolaError
from semprola.logic import TRUE, Formula, parse
from semprola.logic.rules import conjuncts
from semprola.nn import PooledLayer
from semprola.sklearn.targets import constraint_of


def state_of(estimator: Any) -> dict[str, Any]:
    """Everything about a fitted estimator except the network, ready for JSON."""
    parameters = estimator.get_params()
    rules = _rules_of(parameters.pop("constraint"))
    if not isinstance(parameters["random_state"], int):
        parameters["random_state"] = None
    classes = None if estimator.is_multilabel_ else np.asarray(estimator.classes_)
    return {
        "parameters": {name: _plain(value) for name, value in parameters.items()},
        "rules": rules,
        "labels": list(estimator.labels_),
        "classes": None if classes is None else {"dtype": classes.dtype.str, "values": _plain(classes.tolist())},
        "features": int(estimator.n_features_in_),
        "feature_names": _plain(getattr(estimator, "feature_names_in_", None)),
        "epochs": int(estimator.n_iter_),
        "set_scores": _plain(getattr(estimator, "set_scores_", None)),
    }


def restored(kind: Any, state: Mapping[str, Any], network: nn.Module, circuit: Circuit) -> Any:
    """An estimator of this class with this state and network."""
    rules, classes = state["rules"], state["classes"]
    split = next((m.split for m in network.modules() if isinstance(m, PooledLayer)), None)
    constraint: Any = (split or circuit) if rules is None else "\n".join(rules) or None
    model = kind(**{"constraint": None if classes is not None else constraint, **state["parameters"]})
    model.network_, model.circuit_, model.labels_ = network, circuit, tuple(state["labels"])
    model.split_ = split
    model.is_multilabel_ = classes is None
    if classes is None:
        model.classes_ = [np.array([0, 1]) for _ in model.labels_]
    else:
        model.classes_ = np.array(classes["values"], dtype=np.dtype(classes["dtype"]))
    model.n_features_in_, model.n_iter_ = state["features"], state["epochs"]
    if state["set_scores"] is not None:
        model.set_scores_ = np.array(state["set_scores"])
    if state["feature_names"] is not None:
        model.feature_names_in_ = np.array(state["feature_names"], dtype=object)
    return model


def _rules_of(constraint: Any) -> list[str] | None:
    """The rules as texts; None if the circuit or split must do, because no text defines them, or the file is gone."""
    if isinstance(constraint, Split):
        return None
    try:
        rules = constraint_of(constraint)
    except (SemprolaError, OSError):
        return None
    if not isinstance(rules, Formula) or not _has_text(rules):
        return None
    return [] if rules is TRUE else [str(rule) for rule in conjuncts(rules)]


def _has_text(rule: Formula) -> bool:
    """Whether the text of a formula defines it completely; the text of a family does not."""
    try:
        return set(parse(str(rule)).labels) == set(rule.labels)
    except SemprolaError:
        return False


def _plain(value: Any) -> Any:
    """NumPy arrays and numbers as Python lists and numbers."""
    if isinstance(value, np.ndarray | tuple | list):
        return [_plain(part) for part in value]
    return value.item() if isinstance(value, np.generic) else value
