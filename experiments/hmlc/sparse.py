"""Linear layers whose inputs are mostly zero, as after ReLU and dropout: the same numbers up to rounding, sooner.

A C++ compiler builds the kernels on first use. Without one, or off the CPU, torch's own products are used.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from semprola.nn.gate import ColumnLinear

_SOURCE = Path(__file__).with_name("sparse.cpp")
_FLAGS = (
    "-O3", "-march=native", "-funroll-loops", "-ffp-contract=fast", "-fassociative-math", "-fno-signed-zeros",
    "-fno-trapping-math", "-shared", "-fPIC",
)  # fmt: skip


class SparseLinear(nn.Module):
    """A linear layer for the output of a ReLU with dropout.

    In training, no gradient goes to inputs that are zero: a ReLU or dropout before the layer would stop it anyway.
    Everything else is as in `nn.Linear`, but for the layout of the weights: [inputs, outputs].

    Args:
        linear: a linear layer with a bias, whose parameters the new one begins with. The output has its memory layout.
    """

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        self.weight = nn.Parameter(linear.weight.detach().T.contiguous())
        self.bias = linear.bias
        self.turned = isinstance(linear, ColumnLinear)

    def forward(self, x: Tensor) -> Tensor:
        """[rows, outputs] for x [rows, inputs]."""
        if self.training and x.device.type == "cpu" and x.dtype == torch.float32 and kernels() is not None:
            result: Tensor = _SparseProduct.apply(x, self.weight, self.bias, self.turned)  # type: ignore[no-untyped-call]
            return result
        if self.turned:
            return torch.addmm(self.bias[:, None], self.weight.T, x.T).T
        return torch.addmm(self.bias, x, self.weight)


def with_sparse_inputs(net: nn.Sequential, head: Any) -> None:
    """Replace, in place, the linear layers of a network and of its last layer that come right after dropout."""
    for place in range(1, len(net)):
        layer = net[place]
        if isinstance(layer, nn.Linear) and isinstance(net[place - 1], nn.Dropout):
            net[place] = SparseLinear(layer)
    if not isinstance(net[-1], nn.Dropout):
        return
    gate = head.gate
    for name, layer in gate.named_modules():
        if isinstance(layer, nn.Linear):  # the first one
            parent, _, own = name.rpartition(".")
            if own:
                setattr(gate.get_submodule(parent), own, SparseLinear(layer))
            else:
                head.gate = SparseLinear(layer)
            return


class _SparseProduct(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, turned: bool) -> Tensor:
        x = x.contiguous()
        ctx.save_for_backward(x, weight)
        ctx.turned = turned
        size = (len(x), weight.shape[1])
        out = x.new_empty(size[::-1] if turned else size)
        _call("sparse_forward", (x, weight, bias, out), (len(x), *weight.shape, turned))
        return out.T if turned else out

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> Any:
        x, weight = ctx.saved_tensors
        slope = (slopes[0].T if ctx.turned else slopes[0]).contiguous()
        dx, dw = torch.empty_like(x), torch.empty_like(weight)
        _call("sparse_backward", (x, weight, slope, dx, dw), (len(x), *weight.shape, ctx.turned))
        return dx, dw, slope.sum(1 if ctx.turned else 0), None


def _call(name: str, tensors: tuple[Tensor, ...], sizes: tuple[int, ...]) -> None:
    getattr(kernels(), name)(
        *(ctypes.c_void_p(tensor.data_ptr()) for tensor in tensors), *(ctypes.c_int64(size) for size in sizes)
    )


@functools.cache
def kernels() -> ctypes.CDLL | None:
    """The compiled kernels; None if there is no compiler that builds them."""
    compiler = os.environ.get("CXX") or shutil.which("c++") or shutil.which("g++")
    if not compiler:
        return None
    # in a folder of this process alone: what another machine or user has built is never loaded
    with tempfile.TemporaryDirectory() as folder:
        built = Path(folder) / f"sparse-{hashlib.sha256(_SOURCE.read_bytes()).hexdigest()[:8]}.so"
        try:
            subprocess.run(
                [compiler, *_FLAGS, "-o", str(built), str(_SOURCE)], check=True, capture_output=True, timeout=120
            )
            return ctypes.CDLL(str(built))
        except (OSError, subprocess.SubprocessError):
            return None
