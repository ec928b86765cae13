"""One case: a constraint, how it is compiled, a layer over it, an engine. And the same as a program to copy."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from types import SimpleNamespace
from typing import Any

import oracle
import torch
import worlds
from torch import Tensor

import semprola as sp
from semprola.compiler.portfolio import BACKENDS as COMPILERS
from semprola.engine.backends import BACKENDS as ENGINES

from .drawing import ODD, PLAIN, Draw
from .meaning import TOOLS, Meant
from .shrinking import fewer, simpler_text

FEATURES = 10
"""Width of the features, and the most labels: `ConstraintLayer` takes the first features as its logits."""
MOST = 10
"""The most variables of a case."""
BATCHES: tuple[tuple[int, ...], ...] = ((), (1,), (7,), (2, 3))


@dataclass(frozen=True)
class Case:
    """Plain data; everything else follows from it.

    Args:
        seed: of the parameters and features.
        constraint: Python text that makes the constraint.
        labels: the column order; None for the constraint's own.
        given: the inputs; None for those that families declare.
        backend: the compiler.
        layers: Python texts that make layers from ``circuit``; several become a mixture.
        mix: whether to mix even if there is only one layer.
        temperature: of the distribution, or 1.
        engine, dtype, batch, scale: how it is evaluated; parameters are drawn with this standard deviation.
        observed: whether to condition on some labels.
    """

    seed: int
    constraint: str
    labels: tuple[str, ...] | None = None
    given: tuple[str, ...] | None = None
    backend: str = "auto"
    layers: tuple[str, ...] = ("sp.ConstraintLayer(circuit)",)
    mix: bool = False
    temperature: float = 1.0
    engine: str = "torch"
    dtype: str = "float64"
    batch: tuple[int, ...] = (2,)
    scale: float = 0.3
    observed: bool = False

    def simpler(self) -> Iterator[Case]:
        """The same with something left out or made simpler, the most promising first."""
        plain = Case(self.seed, self.constraint)
        for name in ("observed", "backend", "temperature", "mix", "dtype", "scale", "batch", "given", "labels"):
            if getattr(self, name) != getattr(plain, name):
                yield replace(self, **{name: getattr(plain, name)})
        for layers in fewer(self.layers):
            if layers:
                yield replace(self, layers=tuple(layers))
        for text in simpler_text(self.constraint):
            yield replace(self, constraint=text)
            if self.labels is not None:  # labels that are no longer mentioned are free: leave them out too
                yield replace(self, constraint=text, labels=tuple(name for name in self.labels if name in text))
        for name in ("labels", "given"):
            for some in fewer(getattr(self, name) or ()):
                yield replace(self, **{name: tuple(some)})
        for i, layer in enumerate(self.layers):
            for text in simpler_text(layer):
                yield replace(self, layers=(*self.layers[:i], text, *self.layers[i + 1 :]))


def draw_case(rng: random.Random, names: tuple[str, ...] | None = None) -> Case:
    """A random case with a constraint of at most ten variables; it may have no model."""
    draw = Draw(rng, names or (PLAIN if rng.random() < 0.85 else ODD))
    while True:
        text = draw.constraint()
        formula = eval(text, {"sp": sp, **TOOLS})
        inputs = declared(formula)
        variables = list(formula.labels)
        extra = [name for name in draw.names if name not in variables][: rng.choice([0, 0, 0, 0, 0, 1, 2])]
        given: list[str] | None = None
        if rng.random() < 0.25 or (inputs and rng.random() < 0.3):
            given = (
                [*inputs, *rng.sample([v for v in variables if v not in inputs] + extra[:1], k=1)] if variables else []
            )
        free = [name for name in [*variables, *extra] if name not in (inputs if given is None else given)]
        if free and len({*free, *inputs, *(given or ())}) <= MOST:
            break
    shuffled = tuple(rng.sample(free, len(free))) if extra or given is not None or rng.random() < 0.3 else None
    layers = tuple(draw_layer(rng) for _ in range(rng.choice([1, 1, 1, 1, 2, 3])))
    return Case(
        seed=rng.randrange(10**6),
        constraint=text,
        labels=shuffled,
        given=None if given is None else tuple(given),
        backend=rng.choice(["auto"] * 6 + list(COMPILERS)),
        layers=layers,
        mix=len(layers) > 1 or rng.random() < 0.15,
        temperature=rng.choice([1.0] * 6 + [0.5, 3.0]),
        engine=rng.choice([engine.name for engine in ENGINES if engine.is_present()]),
        dtype=rng.choice(["float64", "float64", "float32"]),
        batch=rng.choice(BATCHES),
        scale=rng.choice([0.0, 0.3, 0.3, 2.0]),
        observed=rng.random() < 0.2,
    )


def draw_layer(rng: random.Random) -> str:
    """A layer with random options; or one that `worlds.LAYERS` lists."""
    if rng.random() < 0.25:
        name = rng.choice(sorted(worlds.LAYERS))
        kind = "SPL" if name.startswith("spl") else "ProductSPL"
        options = worlds.LAYERS[name]
        plain = all(isinstance(value, int | str) for value in options.values())
        listed = [f"{key}={value!r}" for key, value in options.items()] if plain else [f"**worlds.LAYERS[{name!r}]"]
        return f"sp.{kind}({FEATURES}, {', '.join(['circuit', *listed])})"
    if rng.random() < 0.15:
        return "sp.ConstraintLayer(circuit)"
    options = [f"components={rng.randint(1, 3)}"] if rng.random() < 0.6 else []
    options += [rng.choice(["gate=(4,)", "gate=3", "gate=torch.nn.Linear"])] if rng.random() < 0.3 else []
    options += ["dropout=0.5"] if rng.random() < 0.1 and "torch" not in str(options) else []
    units = f"units={rng.randint(1, 3)}"
    if rng.random() < 0.5:
        more = [units, f"mixing={rng.choice(['cross', 'elementwise'])!r}"] if rng.random() < 0.5 else []
        more += ["known_states=known"] if rng.random() < 0.2 else []
        more += ["labels=list(circuit.labels)[::-1]"] if rng.random() < 0.0 else []
        return f"sp.SPL({', '.join([str(FEATURES), 'circuit', *options, *more])})"
    q = rng.choice(["factorized", "factorized", "hmm", "vtree"])
    more = [f"q={q!r}", *([units] if q != "factorized" else [])]
    return f"sp.ProductSPL({', '.join([str(FEATURES), 'circuit', *options, *more])})"


def declared(formula: Any) -> list[str]:
    """The inputs that families in a formula declare."""
    return list(dict.fromkeys(name for node in formula.nodes() for name in getattr(node, "given", ())))


class Compiled:
    """The constraint of a case: as a formula, as a circuit, and what it means.

    Raises:
        UnsatisfiableError: it has no model.
    """

    def __init__(self, case: Case) -> None:
        self.source = case
        self.formula = eval(case.constraint, {"sp": sp, **TOOLS})
        self.given = tuple(declared(self.formula) if case.given is None else case.given)
        own = tuple(name for name in self.formula.labels if name not in self.given)
        self.columns = own if case.labels is None else case.labels
        self.meant = Meant(case.constraint, [*self.columns, *self.given])

    @cached_property
    def circuit(self) -> Any:
        case = self.source
        given = {} if case.given is None else {"given": list(case.given)}
        labels = None if case.labels is None else list(case.labels)
        return sp.compile(self.formula, labels=labels, backend=case.backend, cache=False, **given)


class FuzzWorld(worlds.World):
    """A case brought to life, for every check that takes a `World`."""

    def __init__(self, case: Case, compiled: Compiled) -> None:
        self.source, self.compiled = case, compiled
        self.case: Any = SimpleNamespace(
            formula=compiled.meant, circuit=compiled.circuit, columns=compiled.columns, given=compiled.given
        )
        self.batch, self.dtype = case.batch, getattr(torch, case.dtype)
        self.setting: Any = SimpleNamespace(seed=case.seed, layer=_kind(case), observed=case.observed)
        self.generator = self.fresh()
        self.evidence: Tensor | None = None
        torch.manual_seed(case.seed)
        self.z = torch.randn(*self.batch, FEATURES, dtype=self.dtype)
        self.x = self._inputs()
        model = self.some_models(1).reshape(-1, self.labels)
        self.made = [make_layer(case, text, compiled.circuit, model) for text in case.layers]
        if case.observed:
            hidden = torch.rand(self.labels, generator=self.generator) < 0.6
            self.evidence = model[0].masked_fill(hidden, torch.nan)
            alive = (self.allowed & self._fits(oracle.all_states(self.labels, self.dtype))).any(-1)
            if not bool(alive.all()):  # rows differ in their inputs, and this model is not one of all of them
                self.evidence = torch.full_like(model[0], torch.nan)
            del self.allowed
        self.p: Any = self.at(self.z)

    @property
    def deterministic(self) -> bool:
        single = "components=" not in self.source.layers[0].replace("components=1", "")
        single &= "units=" not in self.source.layers[0].replace("units=1", "")
        other = any(
            word in self.source.layers[0] for word in ("replicas", "mixtures", "known", "q='hmm'", "vtree", "**")
        )
        return single and not other and not self.source.mix

    def at(self, z: Tensor, x: Tensor | None = None) -> Any:
        x = self.x if x is None else x
        parts = []
        for layer in self.made:
            features = z[..., : self.labels] if isinstance(layer, sp.ConstraintLayer) else z
            parts.append(layer(features) if x is None else layer(features, given=x))
        p = sp.distributions.mixture(parts) if self.source.mix else parts[0]
        if self.source.temperature != 1.0:
            p = _tempered(p, self.source.temperature)
        return p if self.evidence is None else p.condition(self.evidence)


def make_layer(case: Case, text: str, circuit: Any, known: Tensor) -> torch.nn.Module:
    scope = {"sp": sp, "torch": torch, "worlds": worlds, "circuit": circuit, "known": known.double()}
    layer: torch.nn.Module = eval(text, scope).to(getattr(torch, case.dtype)).eval()
    torch.manual_seed(case.seed)
    for weight in layer.parameters():
        weight.data.normal_(0, case.scale)
    return layer


def program(case: Case, world: FuzzWorld | None) -> list[str]:
    """The case as lines of plain Python, up to the distribution p."""
    lines = ["import torch", "import semprola as sp"]
    if "nx." in case.constraint:
        lines.append("import networkx as nx")
    if "Machine(" in case.constraint:
        lines += ["class Machine:", "    def __init__(self, *parts):"]
        lines.append("        self.transitions, self.initial_state, self.final_states = parts")
    options = [f"{name}={list(value)}" for name in ("labels", "given") if (value := getattr(case, name)) is not None]
    options += [f"backend={case.backend!r}"] if case.backend != "auto" else []
    lines += [f"sp.engine.set_engine({case.engine!r})", f"constraint = {_plain(case.constraint)}"]
    lines.append(f"circuit = sp.compile({', '.join(['constraint', *options])})")
    if world is None:
        return lines
    lines.append(f"torch.manual_seed({case.seed})")
    lines.append(f"z = torch.randn({(*case.batch, FEATURES)}, dtype=torch.{case.dtype})")
    if any("known" in text for text in case.layers):
        lines.append(f"known = torch.tensor({world.some_models(1).reshape(-1, world.labels).tolist()})")
    given = "" if world.x is None else f", given=torch.tensor({world.x.tolist()}, dtype=z.dtype)"
    made = []
    for i, text in enumerate(case.layers):
        lines.append(f"layer{i} = {text}.to(z.dtype).eval()")
        if "Constraint" not in text:
            lines.append(f"torch.manual_seed({case.seed})")
            lines += [f"for weight in layer{i}.parameters():", f"    weight.data.normal_(0, {case.scale})"]
        made.append(f"layer{i}(z{'[..., : circuit.num_labels]' if 'Constraint' in text else ''}{given})")
    lines.append(f"p = sp.distributions.mixture([{', '.join(made)}])" if case.mix else f"p = {made[0]}")
    if case.temperature != 1.0:
        lines.append("from semprola.distributions.mixtures import tempered")
        lines.append(f"p = tempered(p, torch.full((p.log_mixing.shape[-1],), {case.temperature}, dtype=z.dtype))")
    if world.evidence is not None:
        values = zip(world.case.columns, world.evidence.tolist(), strict=True)
        lines.append(f"p = p.condition({ {name: int(v) for name, v in values if v == v} })")
    return lines


def _plain(text: str) -> str:
    return text if "zoo." not in text else f"{text}  # `import zoo` from tests/support"


def _kind(case: Case) -> str:
    """What `test_against_oracle._log_partition` may expect."""
    if case.temperature != 1.0:
        return "other"
    if case.mix or case.layers[0].startswith("sp.SPL"):
        return "spl"
    factorised = "Constraint" in case.layers[0] or not any(word in case.layers[0] for word in ("hmm", "vtree", "**"))
    return worlds.FACTORISED[0] if factorised else "other"


def _tempered(p: Any, temperature: float) -> Any:
    from semprola.distributions.mixtures import tempered

    return tempered(p, torch.full((p.log_mixing.shape[-1],), temperature, dtype=p.log_mixing.dtype))
