"""The tasks that `make bench` measures for every engine and peer, as functions without arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils._pytree import tree_leaves

import semprola as sp
from benchmarks.peers import Peers, Unable, uniform_likelihood
from semprola.engine import CircuitPlans, Literals, choices, encode, likelihood, log_value

Run = Callable[[], Any]
Runs = dict[tuple[str, str], Run | str]
"""What to run for each (task, engine), or a text that says why it is not possible."""

TASKS = {
    "log Z": "log Z of independent labels times the constraint",
    "log Z + gradient": "the same with the gradient of every literal's score",
    "step": "single circuit: the likelihood of one y per row, with the gradient of every weight's logit",
    "step, encoded": "the same, after `layer.encode` has found what each y uses",
    "mode": "the most probable state",
    "sample": "one exact sample",
}
"""Names and meanings of the tasks."""

ENGINES = ("native", "torch", "klay", "cirkit", "fil")


def tasks(circuit: sp.Circuit, peers: Peers, batch: int) -> Runs:
    """Every task for every engine and peer, at some batch size."""
    ours = _Ours(circuit, batch)
    ours.check()
    made: Runs = {}
    for engine in ("native", "torch"):
        for task, run in ours.runs().items():
            made[task, engine] = with_engine(engine, run)
    return made | _peer_runs(peers, ours) | _fil(circuit.num_labels, batch)


class _Ours:
    """The circuit with random scores and logits; the same numbers for all engines and peers."""

    def __init__(self, circuit: sp.Circuit, batch: int) -> None:
        generator = torch.Generator().manual_seed(0)
        self.plans = CircuitPlans(circuit)
        self.plan, self.layer = self.plans.constraint, self.plans.layer_explicit
        variables = circuit.num_variables
        odds = torch.randn((variables, batch), generator=generator)
        self.scores = F.logsigmoid(-odds), F.logsigmoid(odds)
        self.literals = Literals.of(self.plan, *self.scores)
        self.best = Literals.of(self.plan, *self.scores, maximize=True)
        self.leaves = self.literals.leaves.clone().requires_grad_()
        self.column = torch.arange(batch)[None]
        drawn = choices.sample(self.plan, None, self.literals, self.column, generator)
        self.states = drawn[:, 0].T.contiguous()
        self.rows = self.states[None].permute(2, 0, 1)
        self.codes = encode(self.layer, self.rows[:, 0])[None]
        self.logits = torch.randn((self.layer.num_logits, 1, batch), generator=generator).requires_grad_()
        self.labels = variables  # given variables, if any, are treated as labels

    def runs(self) -> dict[str, Run]:
        return {
            "log Z": no_grad(self._value),
            "log Z + gradient": gradient(lambda: self._value().sum(), [self.leaves]),
            "step": gradient(lambda: self._likelihood(None), [self.logits]),
            "step, encoded": gradient(lambda: self._likelihood(self.codes), [self.logits]),
            "mode": lambda: choices.maximize(self.plan, None, self.best),
            "sample": lambda: choices.sample(self.plan, None, self.literals, self.column, None),
        }

    def check(self) -> None:
        """See that likelihoods are those that peers are compared with, and that our engines agree.

        Raises:
            ValueError: if not.
        """
        equal = likelihood(self.layer, torch.zeros_like(self.logits), self.rows, None, self.labels).flatten()[:4]
        if not torch.allclose(equal, uniform_likelihood(self.plans.circuit, self.states[:4]), rtol=1e-4, atol=1e-3):
            raise ValueError("with equal weights, the likelihood is not that of the circuit")
        runs = {task: run for task, run in self.runs().items() if task != "sample"}
        for task, run in runs.items():
            native, torch_engine = (with_engine(engine, run) for engine in ("native", "torch"))
            if isinstance(native, str) or isinstance(torch_engine, str):
                return
            for one, other in zip(tree_leaves(native()), tree_leaves(torch_engine()), strict=True):
                if not torch.allclose(one, other, rtol=1e-3, atol=1e-3):
                    raise ValueError(f"{task}: the native and the torch engine disagree")

    def _value(self) -> Tensor:
        return log_value(self.plan, None, self.leaves)

    def _likelihood(self, codes: Tensor | None) -> Tensor:
        return likelihood(self.layer, self.logits, self.rows, codes, self.labels).sum()


def _peer_runs(peers: Peers, ours: _Ours) -> Runs:
    divided = ours.literals.leaves[0::2], ours.literals.leaves[1::2]
    value = log_value(ours.plan, None, ours.literals.leaves)
    made: Runs = {}
    try:
        run, inputs = peers.klay_log_z(ours.scores, divided, (value + ours.literals.constant, value))
        made["log Z", "klay"], made["log Z + gradient", "klay"] = no_grad(run), gradient(run, inputs)
    except Unable as why:
        made["log Z", "klay"] = made["log Z + gradient", "klay"] = str(why)
    makers = {"klay": peers.klay_step, "cirkit": peers.cirkit_step}
    for engine, make in makers.items():
        try:
            made["step", engine] = gradient(*make(ours.states))
        except Unable as why:
            made["step", engine] = str(why)
    for task in ("log Z", "log Z + gradient"):
        made[task, "cirkit"] = "literals cannot have different scores in each row"
    for task in ("mode", "sample"):
        made[task, "klay"] = "not for circuits whose weights differ from row to row"
        made[task, "cirkit"] = "not for circuits whose weights differ from row to row"
    return made


def _fil(labels: int, batch: int) -> Runs:
    """A layer with the same number of labels and no constraint: one sigmoid per label."""
    logits = torch.randn(batch, labels, requires_grad=True)
    y = torch.randint(0, 2, (batch, labels)).float()
    loss = gradient(lambda: F.binary_cross_entropy_with_logits(logits, y, reduction="sum"), [logits])
    return {
        ("step", "fil"): loss,
        ("mode", "fil"): no_grad(lambda: (logits > 0).to(logits.dtype)),
        ("sample", "fil"): no_grad(lambda: torch.bernoulli(torch.sigmoid(logits))),
    }


NARROW = 16
"""Hidden units of the narrow gate."""


def network_step(circuit: sp.Circuit, batch: int, kind: str, features: int = 77, width: int = 128) -> Run:
    """A whole training step of a small network, or a part of it.

    Args:
        circuit: the rules.
        batch: rows.
        kind: backbone, gate and layer ("spl"); with a hidden layer of few units in the gate ("narrow"); with sigmoids
            ("fil"); or only making a gradient of zeros for the gate's weights ("zeros").
        features, width: sizes of the backbone.
    """
    torch.manual_seed(0)
    backbone = nn.Sequential(nn.Linear(features, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU())
    x = torch.randn(batch, features)
    layer = sp.SPL(width, circuit, gate=(NARROW,) if kind == "narrow" else ())
    if kind == "zeros":
        largest = max(layer.parameters(), key=lambda weight: weight.numel())
        return lambda: torch.zeros_like(largest)
    y = layer(backbone(x)).sample()
    head = nn.Linear(width, circuit.num_labels)

    def spl() -> None:
        backbone.zero_grad()
        layer.zero_grad()
        loss = -layer(backbone(x), scored=y).log_prob(y).mean()
        loss.backward()

    def fil() -> None:
        backbone.zero_grad()
        head.zero_grad()
        F.binary_cross_entropy_with_logits(head(backbone(x)), y).backward()

    return fil if kind == "fil" else spl


def gradient(run: Callable[[], Tensor], inputs: list[Tensor]) -> Run:
    """A value and its derivatives by some inputs."""
    return lambda: torch.autograd.grad(run(), inputs, allow_unused=True)


def no_grad(run: Run) -> Run:
    """The same without derivatives."""

    def quiet() -> Any:
        with torch.no_grad():
            return run()

    return quiet


def with_engine(engine: str, run: Run) -> Run | str:
    """The same with a given engine, or a text that says why if there is no such engine."""
    try:
        with sp.engine.using(engine):
            pass
    except sp.SemprolaError as error:
        return str(error)

    before = sp.engine.get_engine()

    def chosen() -> Any:  # not with `with`, which takes longer than a small circuit
        sp.engine.set_engine(engine)
        try:
            return run()
        finally:
            sp.engine.set_engine(before)

    return chosen
