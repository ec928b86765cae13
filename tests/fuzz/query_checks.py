"""What is checked of a distribution besides `test_against_oracle.CHECKS`: rarer queries, gradients, round trips."""

from __future__ import annotations

import copy
import importlib
import math
import pickle
import random
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import oracle
import torch
from oracle import INF, Table
from torch import Tensor

import semprola as sp
from semprola.training.sets import prediction_sets

from .cases import FuzzWorld
from .drawing import Draw
from .meaning import Meant

_DRAWS = 400
_SURPRISE = 6.0
"""Standard deviations: a fair sampler is as far off once in a billion cases."""


def _overlap(y: Tensor, states: Tensor, *, jaccard: bool) -> Tensor:
    """F1 or Jaccard index of each y [..., labels] with each state [states, labels]; [..., states]."""
    both = y.double() @ states.T
    sizes = y.double().sum(-1, keepdim=True) + states.sum(-1)
    score = both / (sizes - both).clamp(min=1) if jaccard else 2 * both / sizes.clamp(min=1)
    return torch.where(sizes == 0, 1.0, score)


def _expected_set_utilities(w: FuzzWorld) -> None:
    y = torch.randint(0, 2, (2, *w.batch, w.labels), generator=w.fresh()).to(w.dtype)
    for jaccard, query in ((False, w.p.expected_f1), (True, w.p.expected_jaccard)):
        scores = _overlap(y, w.table.states, jaccard=jaccard)
        w.close(query(y), (scores * w.table.probs).sum(-1))


def _decode_with_bound(w: FuzzWorld) -> None:
    states = w.table.states
    for name in ("f1", "jaccard"):
        y, value, bound = w.p.decode_with_bound(name)
        assert w.holds(y).all()
        each = w.table.probs @ _overlap(states, states, jaccard=name == "jaccard").T
        w.close(value, each.gather(-1, oracle.state_index(y).unsqueeze(-1)).squeeze(-1))
        best = each.masked_fill(~w.table.support, -INF).amax(-1)
        assert (bound >= best - w.tolerance).all()
        assert (value <= best + w.tolerance).all()
        assert w.holds(w.p.decode(name)).all()


def _log_prob_of(w: FuzzWorld) -> None:
    """Of a further formula over labels and inputs."""
    names = [*w.case.columns, *w.case.given]
    draw = Draw(random.Random(w.source.seed), names)
    text = draw.rng.choice([draw.formula(1), f"sp.at_most({draw.rng.randint(0, 3)}, {draw.some(1, 4)})"])
    if "sp.Int" in text or "Categ" in text or "sp.parse" in text:
        text = f"sp.Bool({draw.name()!r})"
    states = oracle.all_states(w.labels).expand(*w.batch, -1, -1)
    x = torch.zeros(*w.batch, 0) if w.x is None else w.x
    rows = torch.cat([states, x.double().unsqueeze(-2).expand(*states.shape[:-1], -1)], -1)
    holds = Meant(text, names).evaluate(rows, names)
    expected = torch.logsumexp(w.table.log_probs.masked_fill(~holds, -INF), -1)
    w.close(w.p.log_prob_of(eval(text, {"sp": sp})), expected)


def _project(w: FuzzWorld) -> None:
    y = torch.randint(0, 2, (3, *w.batch, w.labels), generator=w.fresh()).to(w.dtype)
    found = w.p.project(y)
    assert w.holds(found).all()
    distance = (y.double().unsqueeze(-2) != w.table.states).sum(-1).double().masked_fill(~w.table.support, INF)
    least = distance.amin(-1)
    assert torch.equal((found != y).sum(-1).double(), least)
    near = w.table.log_probs.masked_fill(distance > least.unsqueeze(-1), -INF).amax(-1)
    assert (w.table.log_prob(found) >= near - 1e-3 * (1 + near.abs())).all()
    w.close(w.p.log_prob(y, on_violation="project"), w.table.log_prob(found))


def _log_prob_of_violations(w: FuzzWorld) -> None:
    y = torch.randint(0, 2, (*w.batch, w.labels), generator=w.fresh()).to(w.dtype)
    known = w.table.log_prob(y)
    w.close(w.p.log_prob(y, on_violation="ignore"), known.masked_fill(known == -INF, 0.0))
    try:
        w.close(w.p.log_prob(y, on_violation="raise"), known)
        assert (known > -INF).all()
    except sp.errors.ViolationError as error:
        assert (known == -INF).any()
        assert "\n" not in str(error)


def _rescore(w: FuzzWorld) -> None:
    candidates = oracle.all_states(w.labels, w.dtype)[:: max(1, 2**w.labels // 20)]
    prior = torch.randn(len(candidates), dtype=w.dtype, generator=w.fresh())
    states, scores = w.p.rescore(candidates, prior, 0.5)
    shape = (len(candidates), *[1] * len(w.batch), w.labels)
    expected = w.table.log_prob(candidates.reshape(shape)).movedim(0, -1) + 0.5 * prior.double()
    w.close(scores, expected.sort(-1, descending=True).values)
    assert states.shape == (*w.batch, len(candidates), w.labels)


def _by_name(w: FuzzWorld) -> None:
    if any("=" in name for name in w.case.columns):
        return  # labels of a variable have one entry: see _values_of_variables
    mode, marginals = w.p.to_dict(), w.p.to_dict("marginals")
    assert list(mode) == list(w.case.columns)
    found = torch.tensor([marginals[name] for name in w.case.columns], dtype=torch.float64)
    w.close(found.movedim(0, -1), w.table.mean)
    assert torch.equal(torch.tensor(list(mode.values())).movedim(0, -1).to(w.dtype), w.p.mode)
    w.close(w.p.log_prob(mode), w.table.log_prob(w.p.mode))


def _variables(w: FuzzWorld) -> dict[str, list[str]]:
    """The labels of the integers of the constraint, by value."""
    found: dict[str, list[str]] = {}
    for group in dict.fromkeys(node.group for node in w.compiled.formula.nodes() if node.group):
        found[group[0].split("=")[0]] = list(group)
    return found


def _values_of_variables(w: FuzzWorld) -> None:
    """Variables by value: in evidence, in y, in results, and as softmax heads."""
    groups = _variables(w)
    if not groups or not {label for group in groups.values() for label in group} <= set(w.case.columns):
        return
    columns = {name: [w.case.columns.index(label) for label in group] for name, group in groups.items()}
    model = w.some_models(1)[0]
    name, places = next(iter(columns.items()))
    value = groups[name][int(model.reshape(-1, w.labels)[0, places].argmax())].split("=")[1]
    number = value if name == "colour" else int(value)
    label = f"{name}={value}"
    try:
        found = w.p.condition({name: number})
    except sp.UnsatisfiableError:  # in another row, where inputs differ
        assert w.x is not None
        return
    w.close(oracle.log_probs_of_all(found), oracle.log_probs_of_all(w.p.condition({label: 1})))
    mode = w.p.to_dict()[name]
    shown = [groups[name][i].split("=")[1] for i in w.p.mode[..., places].argmax(-1).reshape(-1).tolist()]
    assert list(map(str, np.asarray(mode, dtype=object).reshape(-1))) == shown
    if set(w.case.columns) == {label for group in groups.values() for label in group} and not w.case.given:
        heads = {name: torch.randn(*w.batch, len(group), dtype=w.dtype) for name, group in groups.items()}
        states = oracle.all_states(w.labels)
        scores = [h.log_softmax(-1).double() @ states[:, columns[name]].T for name, h in heads.items()]
        allowed = oracle.allowed(w.case)
        expected = Table(torch.stack(scores).sum(0).masked_fill(~allowed, -INF))
        p = sp.constrain(heads, w.compiled.formula)
        order = [w.case.columns.index(label) for label in p.labels]
        w.close(p.mean, expected.mean[..., order])
        w.close(p.log_partition, expected.log_partition)


def _scored(w: FuzzWorld) -> None:
    if (
        len(w.made) > 1
        or not isinstance(w.made[0], sp.SPL)
        or w.x is not None
        or w.source.mix
        or w.evidence is not None
    ):
        return
    y = w.some_models(1)[0]
    w.close(w.made[0](w.z, scored=y).log_prob(y), w.made[0](w.z).log_prob(y))


def _divergence(w: FuzzWorld) -> None:
    other = w.at(w.z.roll(1) + 0.3)
    try:
        found = torch.distributions.kl_divergence(w.p, other)
    except sp.errors.IntractableError:
        return
    w.close(found, w.table.kl(Table.of(other)))


def _prediction_sets(w: FuzzWorld) -> None:
    if len(w.batch) != 1:
        return
    threshold = float(w.table.max_log_prob.mean()) - 0.5
    for row, found in enumerate(prediction_sets(w.p, threshold)):
        log_probs = w.table.log_probs[row]
        sure = int((log_probs >= threshold + 1e-3).sum())
        possible = max(1, int((log_probs >= threshold - 1e-3).sum()))
        assert max(1, sure) <= len(found) <= possible


def _sampling_is_fair(w: FuzzWorld) -> None:
    y = w.p.sample((_DRAWS,), generator=w.fresh()).reshape(_DRAWS, -1, w.labels)[:, 0]
    counts = torch.bincount(oracle.state_index(y), minlength=2**w.labels)
    assert oracle.chi_square_z(counts, w.table.probs.reshape(-1, 2**w.labels)[0]) < _SURPRISE


def _gradients(w: FuzzWorld) -> None:
    """Against differences, along one direction; a shorter step where the longer one crosses a kink of the gate."""
    if w.dtype != torch.float64:
        return
    y = w.some_models(1)[0]
    partial = y.masked_fill(torch.rand(y.shape, generator=w.fresh()) < 0.5, torch.nan)
    direction = torch.randn(w.z.shape, dtype=w.dtype, generator=w.fresh())
    queries: list[Callable[[Any], Tensor]] = [
        lambda p: p.log_prob(y),
        lambda p: p.mean,
        lambda p: p.log_marginal(partial),
        lambda p: p.entropy(),
        lambda p: p.log_prob_of(sp.Bool(w.case.columns[0])).exp(),
    ]
    for query in queries:
        z = w.z.clone().requires_grad_()
        total = query(w.at(z)).sum()
        slope = 0.0
        if total.requires_grad:
            (gradient,) = torch.autograd.grad(total, z, allow_unused=True)
            slope = 0.0 if gradient is None else float((gradient * direction).sum())
        differences = []
        for step in (1e-4, 1e-6):
            with torch.no_grad():
                up, down = (float(query(w.at(w.z + sign * step * direction)).sum()) for sign in (1, -1))
            differences.append((up - down) / (2 * step))
            if math.isclose(slope, differences[-1], rel_tol=1e-4, abs_tol=1e-4):
                break
        else:
            raise AssertionError(f"slope {slope}, differences {differences}")


def _rows_of_a_batch(w: FuzzWorld) -> None:
    """A row alone has the numbers that it has in a batch."""
    if not math.prod(w.batch):
        return
    index = tuple(0 for _ in w.batch)
    alone = w.at(w.z[index], None if w.x is None else w.x[index])
    w.close(alone.mean, w.table.mean[index])
    w.close(oracle.log_probs_of_all(alone), w.table.log_probs[index])
    wide = w.p.expand((2, *w.batch))
    w.close(wide.entropy(), w.table.entropy.expand(2, *w.batch))


def _condition_step_by_step(w: FuzzWorld) -> None:
    y = w.some_models(1)[0]
    first, second = (torch.rand(y.shape, generator=w.fresh()) < share for share in (0.6, 0.2))
    both = y.masked_fill(first & second, torch.nan)
    p = w.p.condition(y.masked_fill(first, torch.nan)).condition(y.masked_fill(second, torch.nan))
    expected = w.table.condition(both)
    w.close(oracle.log_probs_of_all(p), expected.log_probs)
    w.close(p.entropy(), expected.entropy)
    w.close(p.expected_f1(y), (_overlap(y, expected.states, jaccard=False) * expected.probs).sum(-1))


def _mixtures(w: FuzzWorld) -> None:
    """With itself, and with others by weight."""
    w.close(oracle.log_probs_of_all(sp.distributions.mixture([w.p])), w.table.log_probs)
    other = w.at(-w.z)
    if w.source.temperature != 1.0:
        return
    mixed, mean = sp.distributions.mixture([w.p, other], weights=[1.0, 3.0]), Table.of(other)
    expected = torch.logaddexp(w.table.log_probs + math.log(0.25), mean.log_probs + math.log(0.75))
    w.close(oracle.log_probs_of_all(mixed), expected)
    w.close(mixed.mean, 0.25 * w.table.mean + 0.75 * mean.mean)


def _tempered_has_the_same_support(w: FuzzWorld) -> None:
    from semprola.distributions.mixtures import tempered

    p = tempered(w.p, torch.full((w.p.log_mixing.shape[-1],), 2.0, dtype=w.dtype))
    raw = oracle.log_probs_of_all(p)
    assert torch.equal(raw > -INF, w.allowed)
    w.close(torch.logsumexp(raw, -1), torch.zeros(w.batch))


def _losses(w: FuzzWorld) -> None:
    """The semantic loss of independent labels is minus the log-probability of the constraint."""
    if w.x is not None or w.evidence is not None:
        return
    logits = w.z[..., : w.labels].double()
    states = 2 * oracle.all_states(w.labels) - 1
    per_state = torch.nn.functional.logsigmoid(states * logits.unsqueeze(-2)).sum(-1)
    expected = -torch.logsumexp(per_state.masked_fill(~w.allowed, -INF), -1)
    w.close(sp.losses.SemanticLoss(w.case.circuit, reduction="none")(w.z[..., : w.labels]), expected)


def _half_precision(w: FuzzWorld) -> None:
    """Layers in half precision are normalised, since circuits compute in float32, and what is impossible stays so."""
    if any("known" in text for text in w.source.layers):
        return
    original = w.made
    try:
        for dtype in (torch.bfloat16, torch.float16):
            w.made = [copy.deepcopy(layer).to(dtype) for layer in original]
            raw = oracle.log_probs_of_all(w.at(w.z.to(dtype)))
            assert torch.equal(raw > -INF, w.table.support)
            assert (torch.logsumexp(raw.double(), -1).abs() < 1e-3).all()
    finally:
        w.made = original


def _exported(w: FuzzWorld) -> None:
    """What exporters take gives the layer's numbers, and so does a file, for a few cases."""
    if w.source.mix or w.source.temperature != 1.0 or w.evidence is not None or w.x is not None:
        return
    layer, z = w.made[0], w.z.reshape(-1, w.z.shape[-1])
    z = z[:, : w.labels] if isinstance(layer, sp.ConstraintLayer) else z
    p = layer(z)
    table, y = Table.of(p), p.sample(generator=w.fresh())
    try:
        made = {what: sp.export.module(layer, what) for what in ("mode", "mean", "log_prob", "hamming")}
    except sp.SemprolaError as error:
        assert "\n" not in str(error)
        return
    w.close(made["mean"](z), table.mean)
    w.close(made["log_prob"](z, y), table.log_prob(y))
    w.close(table.log_prob(made["mode"](z)), table.max_log_prob)
    w.close(_expected_hamming(table, made["hamming"](z)), _expected_hamming(table, p.decode("hamming")))
    if w.source.seed % 50 == 0 and len(z) > 1 and w.dtype == torch.float32:
        with tempfile.TemporaryDirectory() as folder:
            path = sp.export.onnx(layer, Path(folder) / "it.onnx", "mean")
            run = importlib.import_module("onnxruntime").InferenceSession(str(path))
            (found,) = run.run(None, {run.get_inputs()[0].name: z.numpy()})
            w.close(torch.from_numpy(found), table.mean)


def _expected_hamming(table: Table, y: Tensor) -> Tensor:
    """Of label vectors y [batch, labels]."""
    return (y.double() - table.mean).abs().sum(-1)


def _copies(w: FuzzWorld) -> None:
    """Copied, pickled and saved layers give the same numbers."""
    if any(text.count("Linear") or "**" in text for text in w.source.layers):
        return  # a function as a gate cannot be described in a folder
    original = w.made
    makers: list[Callable[[torch.nn.Module], Any]] = [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m)), _saved]
    try:
        for again in makers:
            w.made = [again(layer) for layer in original]
            w.close(w.at(w.z).mean, w.table.mean)
    finally:
        w.made = original


def _saved(layer: torch.nn.Module) -> Any:
    if isinstance(layer, sp.ConstraintLayer):
        return layer
    with tempfile.TemporaryDirectory() as folder:
        sp.save(layer, Path(folder) / "it")
        return sp.load(Path(folder) / "it").eval()


CHECKS = (
    _expected_set_utilities,
    _decode_with_bound,
    _log_prob_of,
    _project,
    _log_prob_of_violations,
    _rescore,
    _by_name,
    _values_of_variables,
    _scored,
    _divergence,
    _prediction_sets,
    _sampling_is_fair,
    _gradients,
    _rows_of_a_batch,
    _condition_step_by_step,
    _mixtures,
    _tempered_has_the_same_support,
    _losses,
    _half_precision,
    _exported,
    _copies,
)
