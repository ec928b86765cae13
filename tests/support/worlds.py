"""Layers over the zoo, with random parameters: what the tests of the distributions are run on."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any

import oracle
import torch
import zoo
from oracle import Table
from selection import only, spread
from torch import Tensor

import semprola as sp

IN_FEATURES = 5
BATCHES: tuple[tuple[int, ...], ...] = ((7,), (), (2, 3), (1,))
SCALES = (0.3, 2.0)
TOLERANCE = {torch.float64: 1e-10, torch.float32: 1e-4}

# name → what sp.SPL or sp.ProductSPL is called with
LAYERS: dict[str, dict[str, Any]] = {
    **{f"spl-m{m}-k{k}": {"replicas": m, "units": k} for m in (1, 2, 3) for k in (1, 2, 3)},
    **{
        f"spl-m{m}-k{k}-elementwise": {"replicas": m, "units": k, "mixing": "elementwise"}
        for m, k in ((1, 2), (1, 3), (2, 2))
    },
    **{f"product-{n}": {"mixtures": n} for n in (1, 2, 3)},
    **{f"hmm-{k}": {"q": "hmm", "units": k} for k in (2, 3)},
    "vtree-2": {"q": "vtree", "units": 2},
}
DETERMINISTIC = ("spl-m1-k1", "product-1")
FACTORISED = ("product-1", "product-2", "product-3")


@dataclass(frozen=True)
class Setting:
    """A case of the zoo, a layer over it, and how it is fed."""

    case: zoo.Case
    layer: str
    dtype: torch.dtype = torch.float64
    batch: tuple[int, ...] = (7,)
    scale: float = 0.3
    observed: bool = False

    def __str__(self) -> str:
        batch = "x".join(map(str, self.batch)) or "scalar"
        suffix = "-observed" if self.observed else ""
        return f"{self.case.name}-{self.layer}-{str(self.dtype)[6:]}-{batch}-{self.scale}{suffix}"

    @property
    def seed(self) -> int:
        return zlib.crc32(str(self).encode())


class World:
    """One setting brought to life: ``p = layer(z, given=x)``, and the table that the oracle has of it.

    If the setting is observed, then p is conditioned on ``evidence`` [labels], the same for all rows.
    """

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        self.case, self.batch, self.dtype = setting.case, setting.batch, setting.dtype
        self.generator = torch.Generator().manual_seed(setting.seed)
        self.layer = make_layer(setting, self.generator)
        self.z = torch.randn(*self.batch, IN_FEATURES, dtype=self.dtype, generator=self.generator)
        self.x = self._inputs()
        self.evidence: Tensor | None = None
        if setting.observed:
            model = self.some_models(1).reshape(-1, self.labels)[0]
            hidden = torch.rand(self.labels, generator=self.generator) < 0.6
            self.evidence = model.masked_fill(hidden, torch.nan)
            del self.allowed
        self.p: Any = self.at(self.z)

    def at(self, z: Tensor, x: Tensor | None = None) -> Any:
        """The distribution for other features (and, perhaps, other inputs)."""
        x = self.x if x is None else x
        p = self.layer(z) if x is None else self.layer(z, given=x)
        return p if self.evidence is None else p.condition(self.evidence)

    @property
    def tolerance(self) -> float:
        return TOLERANCE[self.dtype]

    @property
    def labels(self) -> int:
        return len(self.case.columns)

    @property
    def deterministic(self) -> bool:
        return self.setting.layer in DETERMINISTIC

    @cached_property
    def raw(self) -> Tensor:
        """What p says about every state; [*batch, 2^labels]."""
        return oracle.log_probs_of_all(self.p)

    @cached_property
    def table(self) -> Table:
        return Table(self.raw)

    @cached_property
    def allowed(self) -> Tensor:
        """What the formula, and the evidence, say about every state; bool [*batch, 2^labels]."""
        states = oracle.all_states(self.labels, self.dtype)
        return oracle.allowed(self.case, self.x).expand(*self.batch, -1) & self._fits(states)

    def fresh(self) -> torch.Generator:
        """A generator that does not depend on which tests ran before."""
        return torch.Generator().manual_seed(self.setting.seed)

    def some_models(self, count: int) -> Tensor:
        """Random models of every row's constraint, each model as likely as any other; [count, *batch, labels]."""
        weights = self.allowed.reshape(-1, 2**self.labels).to(torch.float64)
        index = torch.multinomial(weights, count, replacement=True, generator=self.fresh())
        return oracle.all_states(self.labels, self.dtype)[index.T].reshape(count, *self.batch, self.labels)

    def holds(self, y: Tensor) -> Tensor:
        """Whether the formula (not the circuit) is true of y [*sample, *batch, labels], and the evidence too."""
        columns = [*self.case.columns, *self.case.given]
        fits = self._fits(y)
        if self.x is not None:
            y = torch.cat([y, self.x.expand(*y.shape[:-1], -1).to(y.dtype)], -1)
        return torch.as_tensor(self.case.formula.evaluate(y.detach(), labels=columns)) & fits

    def close(self, actual: Tensor, expected: Tensor) -> None:
        """Equal to the tolerance of the dtype; infinities must be the same."""
        torch.testing.assert_close(
            actual.detach().to(torch.float64),
            expected.detach().to(torch.float64),
            atol=self.tolerance,
            rtol=self.tolerance,
        )

    def _fits(self, y: Tensor) -> Tensor:
        if self.evidence is None:
            return torch.ones(y.shape[:-1], dtype=torch.bool)
        return ((y == self.evidence) | self.evidence.isnan()).all(-1)

    def _inputs(self) -> Tensor | None:
        if not self.case.given:
            return None
        live = oracle.inputs(self.case).to(self.dtype)
        return live[torch.randint(len(live), self.batch, generator=self.generator)]


def make_layer(setting: Setting, generator: torch.Generator) -> torch.nn.Module:
    """The layer with random parameters, far from any initialisation."""
    kind = sp.SPL if setting.layer.startswith("spl") else sp.ProductSPL
    layer: torch.nn.Module = kind(IN_FEATURES, setting.case.circuit, **LAYERS[setting.layer]).to(setting.dtype)
    for weight in layer.parameters():
        weight.data.normal_(0, setting.scale, generator=generator)
    return layer


@cache
def world(setting: Setting) -> World:
    """The world of a setting; made once a process."""
    return World(setting)


def settings() -> list[Any]:
    """What every query is tried on, as parameters of a test; all but a covering design of it are extensive."""
    return [
        *only(rotation(), lambda setting: setting in every_run()),
        *spread(single_precision(), 46),
        *spread(conditioned(), 78),
    ]


@cache
def every_run() -> frozenset[Setting]:
    """Of all pairs: each case with two layers, each layer with half of the cases in ``zoo.CORE``."""
    layers, chosen = list(LAYERS), set()
    for i, case in enumerate(zoo.CASES):
        here = [setting for setting in rotation() if setting.case is case]
        for is_spl in (True, False):
            kind = [setting for setting in here if setting.layer.startswith("spl") == is_spl]
            chosen.add(kind[i % len(kind)])
        if case.name in zoo.CORE:
            i = zoo.CORE.index(case.name)
            chosen |= {s for s in here if (i + (j := layers.index(s.layer)) + j // 2) % 2 == 0}
    return frozenset(chosen)


def rotation() -> list[Setting]:
    """Every case with every layer in float64, large ones with about a third; batch shapes and scales take turns."""
    return [
        Setting(case, layer, batch=BATCHES[(i + j) % len(BATCHES)], scale=SCALES[(i + j // 4) % len(SCALES)])
        for i, case in enumerate(zoo.CASES)
        for j, layer in enumerate(LAYERS)
        if not case.large or layer in DETERMINISTIC or (i + j) % 5 == 0
    ]


def single_precision() -> list[Setting]:
    """A third of the cases with a third of the layers in float32, so that each of both has its turn."""
    return [
        Setting(case, layer, torch.float32, BATCHES[(i + j) % len(BATCHES)], SCALES[j % len(SCALES)])
        for i, case in enumerate(zoo.CASES)
        for j, layer in enumerate(LAYERS)
        if i % 3 == 0 and (i // 3 + j) % 3 == 0 and not case.large
    ]


def conditioned() -> list[Setting]:
    """Distributions given evidence must answer every query, too: some layers over each small case without inputs.

    More of them over the families, whose zero-suppressed diagrams take another way when a label is observed.
    """
    return [
        replace(setting, observed=True)
        for i, setting in enumerate(rotation())
        if not setting.case.large and not setting.case.given and i % (2 if setting.case in zoo.FAMILIES else 7) == 0
    ]


def crossed(cases: tuple[str, ...], layers: tuple[str, ...], **fixed: Any) -> list[Setting]:
    """The named cases with the named layers."""
    return [Setting(zoo.case(case), layer, **fixed) for case in cases for layer in layers]
