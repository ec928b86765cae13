"""Logits of one component, with and without the dimension for components."""

from __future__ import annotations

from torch import Tensor


def with_components(logits: Tensor, mixing_logits: Tensor | None) -> Tensor:
    """Logits [*batch, components, parameters] from these, or from [*batch, parameters] if one component is meant.

    Without mixing logits there is one component. So the last dimension but one is its dimension if it has size 1, as
    in what a layer's gate returns, and part of the batch otherwise. A batch of exactly one row, [1, parameters], is
    therefore read as one component without a batch: write [1, 1, parameters], or use :func:`semprola.constrain`,
    whose logits never have a dimension for components.

    Args:
        logits: what the caller passed.
        mixing_logits: the logits of the mixture, if any.

    Example:
        >>> import torch
        >>> with_components(torch.zeros(7, 3), None).shape
        torch.Size([7, 1, 3])
        >>> with_components(torch.zeros(7, 2, 3), torch.zeros(7, 2)).shape
        torch.Size([7, 2, 3])
    """
    if mixing_logits is None and (logits.dim() == 1 or logits.shape[-2] != 1):
        return logits.unsqueeze(-2)
    return logits
