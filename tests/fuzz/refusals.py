"""Bad values: each of these expressions must raise an error of one line, and never return."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

import semprola as sp

from .cases import FuzzWorld

BAD: tuple[str, ...] = (
    "at(z * nan)",
    "at(z + inf)",
    "layer(z[..., :-1])",
    "layer(z.numpy())",
    "sp.SPL(3, circuit)(torch.zeros(3, dtype=torch.long), given=x)",
    "p.log_prob(row + 2)",
    "p.log_prob(row + 0.5)",
    "p.log_prob(row * nan)",
    "p.log_prob(torch.cat([row, row[:1]]))",
    "p.log_prob(row[:-1])",
    "p.log_prob({'no such label': 1})",
    "p.log_prob(row, on_violation='nonsense')",
    "p.log_marginal(row + 2)",
    "p.log_marginal(row - inf)",
    "p.log_marginal(torch.cat([row, row[:1]]))",
    "p.log_marginal({'no such label': 1})",
    "p.condition(row + 2)",
    "p.condition(torch.cat([row, row[:1]]))",
    "p.condition({'no such label': 1})",
    "p.condition({name: 2})",
    "p.condition(torch.zeros(5, 4, 3, len(row)))",
    "p.decode('nonsense')",
    "p.decode(row * nan)",
    "p.decode(row + inf)",
    "p.decode({'no such label': 1.0})",
    "p.decode_with_bound('nonsense')",
    "p.top_k(0)",
    "p.top_k(-1)",
    "p.top_k(1.5)",
    "p.sample((-1,))",
    "p.expected_f1(row + 0.5)",
    "p.expected_f1(row * nan)",
    "p.expected_jaccard(row + 2)",
    "p.log_prob_of('no_such_label')",
    "p.log_prob_of('a &')",
    "p.project(row + 2)",
    "p.project(row * nan)",
    "p.rescore(row[None] + 2, torch.zeros(1))",
    "p.rescore(row[None], torch.zeros(3))",
    "p.rescore(row[None], torch.full((1,), nan))",
    "p.to_dict('nonsense')",
    "p.to_dict('top_k', k=0)",
    "p.entropy_estimate(0)",
    "p.support.check(torch.cat([row, row[:1]]))",
    "sp.distributions.mixture([])",
    "sp.distributions.mixture([p], weights=[-1.0])",
    "sp.distributions.mixture([p], weights=[nan])",
    "sp.distributions.mixture([p], weights=[0.0])",
    "sp.distributions.mixture([p], weights=[0.5, 0.5])",
    "sp.distributions.mixture([p, None])",
    "sp.constrain(row * nan, circuit, given=x)",
    "sp.constrain(row + inf, circuit, given=x)",
    "sp.constrain(torch.cat([row, row[:1]]), circuit, given=x)",
    "circuit.condition({'no such label': 1})",
    "circuit.condition({name: 2})",
    "circuit.condition({name: nan})",
    "circuit.satisfied(row + 2, given=x)",
    "circuit.satisfied(row * nan, given=x)",
    "circuit.satisfied(torch.cat([row, row[:1]]), given=x)",
    "sp.compile(circuit, labels=[name, name])",
    "sp.compile(circuit, labels=name)",
    "sp.compile(circuit, labels=[])",
    "sp.compile(circuit, labels=[1])",
    "sp.compile(circuit, given=[name], labels=[name])",
    "sp.compile(circuit, backend='nonsense')",
    "sp.violations(circuit, row + 2, given=x)",
    "sp.violations(circuit, torch.cat([row, row[:1]]), given=x)",
    "circuit.weighted_count({'no such label': (1, 1)})",
    "circuit.weighted_count({name: (nan, 1)})",
    "sp.SPL(0, circuit)",
    "sp.SPL(3, circuit, components=0)",
    "sp.SPL(3, circuit, units=1.5)",
    "sp.SPL(3, circuit, mixing='nonsense', units=2)",
    "sp.SPL(3, circuit, dropout=1.0)",
    "sp.SPL(3, circuit, gate=(0,))",
    "sp.SPL(3, circuit, known_states=row[None] + 2)",
    "sp.ProductSPL(3, circuit, q='nonsense')",
    "sp.ProductSPL(3, circuit, units=-1, q='hmm')",
    "sp.SPL(3, circuit).start_at(row[None] + 2, given=x)",
    "sp.SPL(3, circuit).start_at(row[None] * nan, given=x)",
    "sp.SPL(3, circuit).start_at(model[None], given=x, weight=[-1.0])",
    "sp.SPL(3, circuit).start_at(model[None], given=x, smoothing=0.0)",
    "sp.SPL(3, circuit).start_at(model[None], given=x, smoothing=nan)",
)
OF_FEATURES = ("at(z * nan)", "at(z + inf)", "layer(z[..., :-1])")
WITH_INPUTS: tuple[str, ...] = (
    "bare(z)",
    "bare(z, given=inputs + 2)",
    "bare(z, given=inputs * nan)",
    "bare(z, given=inputs[..., :-1])",
    "bare(z, given={'no such input': 1})",
    "circuit.satisfied(row)",
    "circuit.satisfied(row, given=x + 2)",
    "sp.violations(circuit, row)",
    "sp.violations(circuit, row, given=x * nan)",
)
"""For constraints with inputs."""


def refused(w: FuzzWorld, expression: str) -> None:
    """Raise AssertionError if the expression has a value, or raises an error of another kind."""
    foreign = any(getattr(layer, "num_gate_outputs", 1) == 0 or "Linear" in str(w.source.layers) for layer in w.made)
    if expression in OF_FEATURES and foreign:
        return  # a layer without parameters looks at no features, and a gate of torch has its own errors
    scope = scope_of(w)
    try:
        value = eval(expression, scope)
    except (sp.SemprolaError, ValueError, TypeError) as error:
        text = str(error)
        assert text.strip(), f"{expression}: {type(error).__name__} without a message"
        # a caret below the text of a formula shows the place
        assert "\n" not in text or isinstance(error, sp.ParseError), (
            f"{expression}: a message of several lines: {text!r}"
        )
        own = isinstance(error, sp.SemprolaError) or "semprola" in _raiser(error)
        assert own, f"{expression}: not refused, but failed inside of {_raiser(error)}: {text}"
        return
    raise AssertionError(f"{expression} was not refused: {str(value)[:200]}")


def scope_of(w: FuzzWorld) -> dict[str, Any]:
    """What the expressions may use."""
    model = w.some_models(1).reshape(-1, w.labels)[0]
    x = None if w.x is None else w.x.reshape(-1, w.x.shape[-1])[0]
    features = w.z[..., : w.labels] if isinstance(w.made[0], sp.ConstraintLayer) else w.z
    layer = w.made[0] if w.x is None else lambda z, given=w.x: w.made[0](z, given=given)
    return {
        **{"sp": sp, "torch": torch, "np": np, "nan": torch.nan, "inf": torch.inf, "p": w.p, "at": w.at, "x": x},
        **{"circuit": w.case.circuit, "z": features, "layer": layer, "row": torch.zeros(w.labels, dtype=w.dtype)},
        **{"model": model, "name": w.case.columns[0], "inputs": w.x, "bare": w.made[0]},
    }


def _raiser(error: BaseException) -> str:
    """The file that raised the error."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return "" if trace is None else trace.tb_frame.f_code.co_filename
