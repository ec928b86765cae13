"""Logits that are a linear map of features and need not be computed to ask for the likelihood of a state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class LinearLogits:
    """The last layer of a gate, not yet applied.

    Attributes:
        matrix: [parameters * components, features]; row w * components + c is for parameter w of component c.
        bias: [parameters * components]
        features: [batch, features]
        components: mixture components.
        batch_shape: what the flat batch stands for.
    """

    matrix: Tensor
    bias: Tensor
    features: Tensor
    components: int
    batch_shape: Sequence[int]

    @property
    def parameters(self) -> int:
        return len(self.matrix) // self.components

    def columns(self) -> Tensor:
        """All logits [parameters, components * batch]."""
        # the engine wants the batch last: multiplying from the left gives that layout without a transposition
        product = torch.addmm(self.bias[:, None], self.matrix, self.features.T)
        return product.view(self.parameters, self.components * len(self.features))
