"""The questions that `semprola bench` asks of every engine and peer, as functions that take no arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

import semprola as sp
from semprola.commands import bench_peers as peers
from semprola.engine import Literals, Structure, likelihood, log_value, search

Run = Callable[[], Any]

TASKS = {
    "log Z": "log Z of independent labels",
    "log Z + gradient": "the same with the gradient of every literal's score",
    "step": "single circuit: likelihood of one y a sample and the gradient of every weight's logit",
    "mode": "most probable state",
    "sample": "one exact sample",
}
"""Name and meaning of the questions."""

ENGINES = ("native", "torch", "klay", "cirkit", "pyjuice", "fil")


def tasks(circuit: sp.Circuit, batch: int) -> dict[tuple[str, str], Run | str]:
    """What to run for each (task, engine); a text where one cannot do it, saying why."""
    made: dict[tuple[str, str], Run | str] = {}
    ours = _Ours(circuit, batch)
    for engine in ("native", "torch"):
        for task, run in ours.runs().items():
            made[task, engine] = _with_engine(engine, run)
    made |= _peer_runs(circuit, ours)
    made |= _fil(circuit.num_labels, batch)
    return made


class _Ours:
    """The circuit with random scores and logits; the same numbers for all engines and peers."""

    def __init__(self, circuit: sp.Circuit, batch: int) -> None:
        generator = torch.Generator().manual_seed(0)
        self.structure = Structure(circuit)
        self.plan, self.layer = self.structure.constraint, self.structure.layer_explicit
        variables = circuit.num_variables
        odds = torch.randn((variables, batch), generator=generator)
        self.scores = F.logsigmoid(-odds), F.logsigmoid(odds)
        self.literals = Literals.of(self.plan, *self.scores)
        self.best = Literals.of(self.plan, *self.scores, maximize=True)
        self.leaves = self.literals.leaves.clone().requires_grad_()
        self.column = torch.arange(batch)[None]
        drawn = search.sample(self.plan, None, self.literals, self.column, generator)
        self.states = drawn[:, 0].T.contiguous()
        self.rows = self.states[None].permute(2, 0, 1)
        self.logits = torch.randn((self.layer.num_weights, 1, batch), generator=generator).requires_grad_()
        self.labels = variables  # given variables, if any, are treated as labels

    def runs(self) -> dict[str, Run]:
        return {
            "log Z": self.log_z,
            "log Z + gradient": lambda: torch.autograd.grad(self._value().sum(), self.leaves),
            "step": self.step,
            "mode": lambda: search.maximize(self.plan, None, self.best),
            "sample": lambda: search.sample(self.plan, None, self.literals, self.column, None),
        }

    def _value(self) -> Tensor:
        return log_value(self.plan, None, self.leaves)

    def log_z(self) -> Tensor:
        with torch.no_grad():
            return self._value()

    def step(self) -> Any:
        total = likelihood(self.layer, self.logits, self.rows, None, self.labels)
        return torch.autograd.grad(total.sum(), self.logits)


def _peer_runs(circuit: sp.Circuit, ours: _Ours) -> dict[tuple[str, str], Run | str]:
    made: dict[tuple[str, str], Run | str] = {}
    divided = ours.literals.leaves[0::2], ours.literals.leaves[1::2]
    try:
        run = peers.klay_log_z(circuit, ours.scores, divided)
        made["log Z", "klay"] = _no_grad(run)
        made["log Z + gradient", "klay"] = _gradient(run)
    except peers.Unable as why:
        made["log Z", "klay"] = made["log Z + gradient", "klay"] = str(why)
    makers = {"klay": peers.klay_step, "cirkit": peers.cirkit_step, "pyjuice": peers.pyjuice_step}
    for engine, make in makers.items():
        try:
            made["step", engine] = _gradient(make(circuit, ours.states))
        except peers.Unable as why:
            made["step", engine] = str(why)
    for task in ("log Z", "log Z + gradient"):
        made[task, "cirkit"] = "literals have no scores of their own for each sample"
    for task in ("mode", "sample"):
        made[task, "klay"] = "not for circuits with other weights for each sample"
        made[task, "cirkit"] = "not for circuits with other weights for each sample"
    return made


def _fil(labels: int, batch: int) -> dict[tuple[str, str], Run | str]:
    """A layer of the same number of labels without a constraint: a sigmoid each."""
    logits = torch.randn(batch, labels, requires_grad=True)
    y = torch.randint(0, 2, (batch, labels)).float()

    def step() -> Any:
        return torch.autograd.grad(F.binary_cross_entropy_with_logits(logits, y, reduction="sum"), logits)

    return {("step", "fil"): step}


def network_step(circuit: sp.Circuit, batch: int, kind: str, features: int = 77, width: int = 128) -> Run:
    """A whole training step of a small network: backbone, gate and layer ("spl"), or the same with sigmoids ("fil")."""
    torch.manual_seed(0)
    backbone = nn.Sequential(nn.Linear(features, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU())
    x = torch.randn(batch, features)
    layer = sp.SPL(width, circuit)
    y = layer(backbone(x)).sample()
    head = nn.Linear(width, circuit.num_labels)

    def spl() -> None:
        backbone.zero_grad()
        layer.zero_grad()
        (-layer(backbone(x)).log_prob(y).mean()).backward()

    def fil() -> None:
        backbone.zero_grad()
        head.zero_grad()
        F.binary_cross_entropy_with_logits(head(backbone(x)), y).backward()

    return spl if kind == "spl" else fil


def _gradient(run: Run) -> Run:
    inputs = run.inputs  # type: ignore[attr-defined]
    return lambda: torch.autograd.grad(run(), inputs, allow_unused=True)


def _no_grad(run: Run) -> Run:
    def quiet() -> Any:
        with torch.no_grad():
            return run()

    return quiet


def _with_engine(engine: str, run: Run) -> Run | str:
    before = sp.get_engine()
    try:
        sp.set_engine(engine)
    except sp.SemprolaError as error:
        return str(error)
    finally:
        sp.set_engine(before)

    def chosen() -> Any:
        sp.set_engine(engine)
        try:
            return run()
        finally:
            sp.set_engine(before)

    return chosen
