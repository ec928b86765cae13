"""A distribution made to give the likelihood of states that were known beforehand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.distributions import Distribution

from semprola.circuit import Circuit
from semprola.distributions.encoding import EncodedStates
from semprola.distributions.evaluator import Evaluator
from semprola.distributions.spl import SPLDistribution


class Announced:
    """Label vectors whose likelihood will be asked for within a block of code.

    Args:
        y: label vectors [*batch, labels], possibly encoded by a layer's `encode`.
    """

    def __init__(self, y: Tensor | EncodedStates) -> None:
        self.y = y
        self.is_over = False
        self._version = self._current()

    def is_still(self, value: Any) -> bool:
        """Whether a value is this same object, not modified since."""
        return value is self.y and self._current() == self._version

    def _current(self) -> int:
        y = self.y.states if isinstance(self.y, EncodedStates) else self.y
        return 0 if y.is_inference() else y._version  # a layer does not use labels of inference mode


class ScoredDistribution(SPLDistribution):
    """An `SPLDistribution` that knows the log-probabilities of some states and computes everything else on demand.

    Args:
        circuit: the compiled constraint.
        announced: the states.
        log_probs: their log-probabilities [*batch].
        make: returns the whole mixture, or raises an error if it has changed since the call of the layer.
    """

    def __init__(
        self, circuit: Circuit, announced: Announced, log_probs: Tensor, make: Callable[[], Evaluator]
    ) -> None:
        Distribution.__init__(self, log_probs.shape, torch.Size([circuit.num_labels]), validate_args=False)
        self._validate_args = __debug__
        self._announced, self._log_probs, self._make = announced, log_probs, make
        self._whole: Evaluator | None = None

    @property
    def evaluator(self) -> Evaluator:
        """The mixture, over a flat batch."""
        if self._whole is None:
            self._whole = self._make()
        return self._whole

    @evaluator.setter
    def evaluator(self, evaluator: Evaluator) -> None:
        # the known log-probabilities do not apply to another mixture
        self._whole, self._announced = evaluator, Announced(torch.empty(0))

    def log_prob(self, value: Any, on_violation: str | None = None) -> Tensor:
        """See :meth:`SPLDistribution.log_prob`."""
        if on_violation is None and self._announced.is_still(value):
            return self._log_probs.clone()
        return super().log_prob(value, on_violation)
