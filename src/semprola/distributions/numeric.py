"""Small numerical helpers shared by the queries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

import torch
from torch import Tensor

from semprola.engine.numbers import NEGATIVE_INFINITY
from semprola.errors import IntractableError

T = TypeVar("T")


class remembered(Generic[T]):
    """A cached property. It is computed again if it was cached without derivatives and these are now needed."""

    def __init__(self, make: Callable[[Any], T]) -> None:
        self._make, self._key = make, f"_remembered_{make.__name__}"
        self.__doc__ = make.__doc__

    @overload
    def __get__(self, owner: None, kind: type) -> remembered[T]: ...

    @overload
    def __get__(self, owner: object, kind: type) -> T: ...

    def __get__(self, owner: Any, kind: type) -> Any:
        if owner is None:
            return self
        wanted = torch.is_grad_enabled()
        found: tuple[T, bool] | None = owner.__dict__.get(self._key)
        if found is None or (wanted and not found[1]):
            found = owner.__dict__[self._key] = (self._make(owner), wanted)
        return found[0]

    def forget(self, owner: Any) -> None:
        """Discard the cached value."""
        owner.__dict__.pop(self._key, None)


def log_sum_exp(values: Tensor, dim: int) -> Tensor:
    """log-sum-exp whose derivative is zero, not NaN, where everything is -inf."""
    dead = (values == NEGATIVE_INFINITY).all(dim)
    total = torch.logsumexp(values.masked_fill(dead.unsqueeze(dim), 0.0), dim)
    return total.masked_fill(dead, NEGATIVE_INFINITY)


def not_negative(values: Tensor) -> Tensor:
    """The values, with zero for what rounding made negative; the derivative is kept."""
    return torch.where(values < 0, values - values.detach(), values)


def intractable(what: str, instead: str) -> IntractableError:
    """The error for a query that has no exact answer in linear time."""
    return IntractableError(f"{what} is not tractable for a mixture with a large support: use {instead}")
