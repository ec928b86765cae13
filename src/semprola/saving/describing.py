"""Networks as plain data: from modules to JSON and back, only for modules on a list."""

from __future__ import annotations

import inspect
from typing import Any

from torch import nn

from semprola.circuit import Circuit
from semprola.compiler.splitting import Split
from semprola.errors import FormatError
from semprola.logic import Leaf, parse
from semprola.nn import SPL, ConstraintLayer, Gate, PooledLayer, ProductSPL
from semprola.nn.standardize import Standardize
from semprola.sequences import SequenceSPL
from semprola.sequences.machines import TagMachine

_TORCH = (
    "AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AvgPool1d", "AvgPool2d", "BatchNorm1d", "BatchNorm2d", "Conv1d",
    "Conv2d", "Dropout", "Dropout2d", "ELU", "Embedding", "Flatten", "GELU", "GroupNorm", "Hardswish", "Identity",
    "LayerNorm", "LeakyReLU", "Linear", "LogSigmoid", "MaxPool1d", "MaxPool2d", "Mish", "PReLU", "RMSNorm", "ReLU",
    "ReLU6", "SELU", "SiLU", "Sigmoid", "Softplus", "Tanh", "Unflatten",
)  # fmt: skip
_DEEPEST = 40


def describe(module: nn.Module, circuits: list[Circuit]) -> dict[str, Any] | None:
    """A description of how to build a module, ready for JSON; None if it has a part that is not on the list.

    Args:
        circuits: the circuits that the description refers to by index; new ones are appended.
    """
    name = type(module).__name__
    if type(module) is nn.Sequential:
        children = {label: describe(child, circuits) for label, child in module.named_children()}
        return None if None in children.values() else {"class": name, "children": list(children.items())}
    if isinstance(module, SPL | ProductSPL) and type(module) in (SPL, ProductSPL):
        return _describe_layer(module, circuits)
    if type(module) is ConstraintLayer:
        if module.split is not None:
            said = _describe_split(module.split, circuits)
            return None if said is None else {"class": name, "split": said}
        return {"class": name, "circuit": _number(module.circuit, circuits)}
    if type(module) is PooledLayer:
        return _describe_pool(module, circuits)
    if type(module) is SequenceSPL:
        rules = {"table": module.machine.table.tolist(), "accepting": module.machine.accepting.tolist()}
        return {"class": name, "options": {"tags": list(module.tags), "transitions": module.is_learnt}, "rules": rules}
    if type(module) is Standardize:
        return {"class": name, "options": {"features": module.features}}
    if name in _TORCH and type(module) is getattr(nn, name):
        options = _options(module)
        return None if options is None else {"class": name, "options": options}
    return None


def build(description: Any, circuits: list[Circuit], depth: int = 0) -> nn.Module:
    """Build the module of a description, with new parameters."""
    if not isinstance(description, dict) or depth > _DEEPEST:
        raise FormatError("the description of the network is damaged")
    name, options = description.get("class"), description.get("options", {})
    if name == "Sequential":
        model = nn.Sequential()
        for label, child in description["children"]:
            model.add_module(str(label), build(child, circuits, depth + 1))
        return model
    if name in ("SPL", "ProductSPL"):
        gate = options.get("gate", ())
        made = build(gate, circuits, depth + 1) if isinstance(gate, dict) else tuple(gate)
        kind: Any = SPL if name == "SPL" else ProductSPL
        circuit = circuits[description["circuit"]]
        known = description.get("known")
        # the states themselves are loaded with the parameters; here any state will do
        more = {"known_states": circuit.enumerate(limit=1)[:, : circuit.num_labels]} if known else {}
        layer: nn.Module = kind(constraint=circuit, **{**options, "gate": made}, **more)
        if isinstance(layer, SPL) and layer.known is not None:
            layer.known.resize(int(known or 1))
        return layer
    if name == "PooledLayer":
        members = [build(member, circuits, depth + 1) for member in description["members"]]
        return PooledLayer(_split(description["split"], circuits), members, description["weights"])
    if name == "ConstraintLayer" and "split" in description:
        return ConstraintLayer(_split(description["split"], circuits))
    if name == "ConstraintLayer":
        return ConstraintLayer(circuits[description["circuit"]])
    if name == "SequenceSPL":
        return SequenceSPL(rules=TagMachine(**description["rules"]), **options)
    if name == "Standardize":
        return Standardize(**options)
    if name not in _TORCH:
        raise FormatError(f"the network has a {name!r:.40}, which this version cannot build")
    module: nn.Module = getattr(nn, name)(**{key: _back(value) for key, value in options.items()})
    return module


def circuits_of(network: nn.Module) -> list[Circuit]:
    """The circuits of a network's layers, each once."""
    found: list[Circuit] = []
    for module in network.modules():
        split = getattr(module, "split", None)
        own = split.circuits if isinstance(split, Split) else (getattr(module, "circuit", None),)
        for circuit in own:
            if isinstance(circuit, Circuit) and not any(circuit is known for known in found):
                found.append(circuit)
    return found


def _describe_layer(layer: SPL | ProductSPL, circuits: list[Circuit]) -> dict[str, Any] | None:
    options: dict[str, Any] = {"in_features": layer.in_features, "components": layer.components}
    if isinstance(layer, SPL):
        options |= {"units": layer.units, "mixing": layer.plans.mixing}
    elif not isinstance(layer.q, str):
        return None
    else:
        options |= {"q": layer.q} | ({} if layer.q == "factorized" else {"units": layer.units})
    gate = layer.gate
    if type(gate) is Gate:
        dropout = [module.p for module in gate.hidden if isinstance(module, nn.Dropout)]
        options["gate"] = [module.out_features for module in gate.hidden if isinstance(module, nn.Linear)]
        options["dropout"] = dropout[0] if dropout else 0.0
    else:
        options["gate"] = describe(gate, circuits)
        if options["gate"] is None:
            return None
    known = {"known": len(layer.known.states)} if isinstance(layer, SPL) and layer.known is not None else {}
    return {"class": type(layer).__name__, "options": options, "circuit": _number(layer.circuit, circuits), **known}


def _describe_pool(layer: PooledLayer, circuits: list[Circuit]) -> dict[str, Any] | None:
    said = _describe_split(layer.split, circuits)
    members = [describe(member, circuits) for member in layer.members]
    if said is None or None in members:
        return None
    weights = None if layer.has_learnt_weights else layer.weights.tolist()
    return {"class": "PooledLayer", "split": said, "members": members, "weights": weights}


def _describe_split(split: Split, circuits: list[Circuit]) -> dict[str, Any] | None:
    """A split; None if a rule that it leaves out cannot be written as text."""
    rules = split.rules_left_out
    if any(isinstance(node, Leaf) for rule in rules for node in rule.nodes()):
        return None
    places = {str(rule): place for rule, place in split.places.items()}
    source = split.source
    has_text = source is not None and not any(isinstance(node, Leaf) for node in source.nodes())
    return {
        "circuits": [_number(c, circuits) for c in split.circuits],
        "left_out": list(map(str, rules)),
        "places": places,
        "source": str(source) if has_text else None,
    }


def _split(description: Any, circuits: list[Circuit]) -> Split:
    rules = tuple(parse(text) for text in description["left_out"])
    places = {rule: description["places"][str(rule)] for rule in rules if str(rule) in description["places"]}
    text = description.get("source")
    source = None if text is None else parse(text)
    return Split(tuple(circuits[number] for number in description["circuits"]), rules, places, source=source)


def _number(circuit: Circuit, circuits: list[Circuit]) -> int:
    for number, known in enumerate(circuits):
        if known is circuit:
            return number
    circuits.append(circuit)
    return len(circuits) - 1


def _options(module: nn.Module) -> dict[str, Any] | None:
    """The constructor arguments of one of torch's own modules, which it keeps under the same names."""
    options: dict[str, Any] = {}
    for name, parameter in inspect.signature(type(module).__init__).parameters.items():
        if name in ("self", "device", "dtype", "args", "kwargs") or parameter.kind is parameter.VAR_KEYWORD:
            continue
        if not hasattr(module, name):
            if parameter.default is parameter.empty or name in ("init", "_weight", "_freeze"):
                continue
            return None
        value = getattr(module, name)
        options[name] = (value is not None) if name == "bias" else value
    return options if all(_is_plain(value) for value in options.values()) else None


def _is_plain(value: Any) -> bool:
    if isinstance(value, tuple | list):
        return all(_is_plain(part) for part in value)
    return value is None or isinstance(value, bool | int | float | str)


def _back(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
