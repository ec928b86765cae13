"""Parameters of an estimator: checked before anything is trained, and old names of layers."""

from __future__ import annotations

import warnings
from typing import Any

import torch

from semprola.compiler.splitting import Split

_LAYERS = ("spl", "product-spl")
_OLD_LAYERS = {"single": "spl", "product": "product-spl"}
"""Names of version 0.1, which go with the next release."""


def check_parameters(estimator: Any) -> None:
    """Refuse parameters that are wrong, or that do not go together."""
    layer = layer_name(estimator.layer)
    if layer not in _LAYERS:
        raise ValueError(f"layer must be {' or '.join(map(repr, _LAYERS))}, not {estimator.layer!r}")
    if not 0 <= estimator.validation_fraction < 1:
        raise ValueError(f"validation_fraction must be from 0 to below 1, not {estimator.validation_fraction!r}")
    if layer == "product-spl" and estimator.units != 1:
        raise ValueError("units= is for layer='spl': use components= instead")
    check_device(estimator.device)
    if isinstance(estimator.constraint, Split) and not estimator.constraint.is_exact:
        if estimator.decode != "mode":
            raise ValueError(f"decode={estimator.decode!r} needs marginals, which a split has not: use decode='mode'")
        if estimator.label_weight is not None:
            raise ValueError("label_weight needs marginals, which a split has not: leave it out")


def layer_name(layer: str) -> str:
    """The name of a layer; those of version 0.1 warn."""
    if layer not in _OLD_LAYERS:
        return layer
    new = _OLD_LAYERS[layer]
    text = f"layer={layer!r} is now {new!r}; the old name goes with the next release"
    warnings.warn(text, DeprecationWarning, stacklevel=4)
    return new


def check_device(device: Any) -> None:
    """Refuse a device that this machine does not have."""
    if device is None:
        return
    try:
        torch.zeros(1, device=device).item()
    except Exception as error:  # torch raises many kinds of errors, one per device
        reason = (str(error).splitlines() or [type(error).__name__])[0].partition(". ")[0].rstrip(".")
        raise ValueError(f"device {device!r} cannot be used here: {reason[:240]}: try device 'cpu'") from None
