"""What a user of KLay writes for the calls of `benchmarks.calls`, in each of its modes."""

from __future__ import annotations

import importlib
import importlib.util
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cached_property
from types import FrameType
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.utils.dlpack import from_dlpack

from benchmarks.peers import Unable, klay_circuit
from semprola.circuit import Circuit
from semprola.engine import CircuitPlans

MODES = ("eager", "compiled", "jax")
"""Its torch module as it is, with its default (torch.compile), and its JAX function."""


class KlayCalls:
    """KLay's modules for one circuit, each made on first use.

    Args:
        circuit: the circuit.
        seconds: most seconds until a compiled module has given its first answer.
        device: where to evaluate; the JAX function is for the CPU.
    """

    def __init__(self, circuit: Circuit, seconds: float, device: torch.device | str = "cpu") -> None:
        self._circuit, self._seconds, self._device = circuit, seconds, torch.device(device)
        self._late: dict[str, str] = {}

    def budget(self, mode: str) -> AbstractContextManager[None]:
        """A context in which the first call of a mode has to end."""
        return nullcontext() if mode == "eager" else self._in_time(mode)

    def call(self, task: str, mode: str, ours: Any) -> Any:
        """The call for a task, with the same logits and states as ours.

        Raises:
            Unable: if KLay cannot do it.
        """
        if mode in self._late:
            raise Unable(self._late[mode])
        if task == "mode":
            raise Unable("its module for maxima works with plain numbers, which underflow")
        if mode == "jax":
            return self._jax_call(task, ours)
        module = self._module if mode == "eager" else self._compiled
        log_z = self._log_z(module)
        if task == "log Z + gradient":
            return ours.with_gradient(lambda: log_z(ours.logits))

        def likelihood(logits: Tensor) -> Tensor:
            return -F.binary_cross_entropy_with_logits(logits, ours.y, reduction="none").sum(-1) - log_z(logits)

        if task == "step":
            return ours.step(lambda logits: likelihood(logits).mean())
        return ours.with_gradient(lambda: likelihood(ours.logits))

    def _log_z(self, module: Any) -> Callable[[Tensor], Tensor]:
        only_odds = self._only_odds.to(self._device)
        if not bool(only_odds.any()):
            return lambda logits: module(F.logsigmoid(logits), F.logsigmoid(-logits))[..., 0]
        if bool(only_odds.all()):
            return lambda logits: module(logits, torch.zeros_like(logits))[..., 0] + F.logsigmoid(-logits).sum(-1)

        def log_z(logits: Tensor) -> Tensor:
            ones, zeros = torch.where(only_odds, logits, F.logsigmoid(logits)), F.logsigmoid(-logits)
            outside = zeros.masked_fill(~only_odds, 0.0).sum(-1)
            value: Tensor = module(ones, zeros.masked_fill(only_odds, 0.0))[..., 0]
            return value + outside

        return log_z

    def _jax_call(self, task: str, ours: Any) -> Any:
        if importlib.util.find_spec("jax") is None:
            raise Unable("jax is not installed")
        if task == "step":
            raise Unable("a torch network cannot train through its JAX function")
        jax, jnp = importlib.import_module("jax"), importlib.import_module("jax.numpy")
        function = self._made[0].to_jax_function(semiring="log")
        sigmoid, only_odds = jax.nn.log_sigmoid, jnp.asarray(self._only_odds.numpy())

        def log_z(row: Any) -> Any:
            zeros = sigmoid(-row)
            value = function(jnp.where(only_odds, row, sigmoid(row)), jnp.where(only_odds, 0.0, zeros))[0]
            return value + jnp.where(only_odds, zeros, 0.0).sum()

        def value(logits: Any, y: Any) -> Any:
            log_zs = jax.vmap(log_z)(logits)
            if task != "log Z + gradient":
                log_zs = jnp.where(y > 0.5, sigmoid(logits), sigmoid(-logits)).sum(-1) - log_zs
            return log_zs.sum(), log_zs

        run = jax.jit(jax.grad(value, has_aux=True))
        logits, y = jnp.asarray(ours.logits.detach().numpy()), jnp.asarray(ours.y.numpy())

        def call() -> tuple[Tensor, Tensor]:
            slopes, values = jax.block_until_ready(run(logits, y))
            return from_dlpack(values), from_dlpack(slopes)

        return call

    @cached_property
    def _made(self) -> tuple[Any, bool]:
        made, _, spelled_out = klay_circuit(self._circuit, weigh_edges=False)
        return made, spelled_out

    @cached_property
    def _only_odds(self) -> Tensor:
        """Which labels are zero in a branch that does not mention them, so that only their odds enter the circuit.

        Other labels may be either there, and their two probabilities enter.
        """
        suppressed = CircuitPlans(self._circuit).constraint.kinds == 1
        return suppressed & (not self._made[1])

    @cached_property
    def _module(self) -> Any:
        return self._made[0].to_torch_module(semiring="log", compile=False).to(self._device)

    @cached_property
    def _compiled(self) -> Any:
        torch._dynamo.reset()
        return self._made[0].to_torch_module(semiring="log").to(self._device)

    @contextmanager
    def _in_time(self, mode: str) -> Iterator[None]:
        """Stop after some seconds, where the system has alarms."""
        if not hasattr(signal, "SIGALRM") or threading.current_thread() is not threading.main_thread():
            yield
            return

        def stop(number: int, frame: FrameType | None) -> None:
            self._late[mode] = f"not compiled within {self._seconds:.0f} s"
            raise Unable(self._late[mode])

        before = signal.signal(signal.SIGALRM, stop)
        signal.setitimer(signal.ITIMER_REAL, self._seconds)
        try:
            yield
        except Exception:
            if mode in self._late:  # a compiler may wrap what stopped it into an error of its own
                raise Unable(self._late[mode]) from None
            raise
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
