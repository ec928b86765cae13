"""Linear layers after ReLU and dropout, where most units are zero: the same numbers up to rounding, sooner.

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


class Dropout(nn.Dropout):
    """Dropout that draws a byte per unit, in place of torch's float, which took a tenth of a training step.

    The probability is the nearest multiple of 1/256, such as 0.699 for 0.7.
    """

    @property
    def kept(self) -> int:
        """How many of 256 units stay."""
        return round(256 * (1 - self.p))

    def draw(self, x: Tensor) -> Tensor:
        """A byte per unit, in the shape of x: the unit stays if it is below `kept`."""
        # whole words, because drawing a word takes as long as drawing a byte
        words = torch.empty(-(-x.numel() // 8), dtype=torch.int64).random_(-(2**63), None)
        return words.view(torch.uint8)[: x.numel()].view(x.shape)

    def forward(self, x: Tensor) -> Tensor:
        """The units that are kept, scaled up, and zeros."""
        if not self.training or self.kept == 256:
            return x
        return x * (self.draw(x) < self.kept).to(x.dtype).mul_(256 / self.kept)


class SparseLinear(nn.Module):
    """ReLU, dropout and a linear layer in one.

    Everything is as in the three layers, but for the layout of the weights: [inputs, outputs].

    Args:
        linear: a linear layer with a bias, whose parameters the new one begins with. The output has its memory layout.
        dropout: its probability is taken over.
    """

    def __init__(self, linear: nn.Linear, dropout: Dropout) -> None:
        super().__init__()
        self.dropout = dropout
        self.weight = nn.Parameter(linear.weight.detach().T.contiguous())
        self.bias = linear.bias
        self.turned = isinstance(linear, ColumnLinear)

    def forward(self, h: Tensor) -> Tensor:
        """[rows, outputs] for h [rows, inputs], the units before ReLU."""
        usual = h.device.type == "cpu" and h.dtype == torch.float32
        if self.training and usual and self.dropout.kept < 256 and kernels() is not None:
            drawn = (self.dropout.draw(h), self.dropout.kept, self.turned)
            result: Tensor = _SparseProduct.apply(h, self.weight, self.bias, *drawn)  # type: ignore[no-untyped-call]
            return result
        x = self.dropout(h.relu())
        if self.turned:
            return torch.addmm(self.bias[:, None], self.weight.T, x.T).T
        return torch.addmm(self.bias, x, self.weight)


def with_sparse_inputs(net: nn.Sequential, head: Any) -> None:
    """Let the linear layers of a network and its last layer do the ReLU and dropout before them, in place."""
    for place in range(1, len(net)):
        layer = net[place]
        if isinstance(layer, nn.Linear) and isinstance(net[place - 1], Dropout):
            net[place] = SparseLinear(layer, _taken(net, place - 1))
    if not isinstance(net[-1], Dropout):
        return
    gate = head.gate
    for name, layer in gate.named_modules():
        if isinstance(layer, nn.Linear):  # the first one
            parent, _, own = name.rpartition(".")
            layer = SparseLinear(layer, _taken(net, len(net) - 1))
            if own:
                setattr(gate.get_submodule(parent), own, layer)
            else:
                head.gate = layer
            return


def _taken(net: nn.Sequential, place: int) -> Dropout:
    """Take the dropout at a place, and the ReLU before it, out of a network."""
    dropout = net[place]
    if not isinstance(dropout, Dropout) or not isinstance(net[place - 1], nn.ReLU):
        raise ValueError(f"expected ReLU and dropout, got {net[place - 1]} and {dropout}")
    net[place] = net[place - 1] = nn.Identity()
    return dropout


class _SparseProduct(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, h: Tensor, weight: Tensor, bias: Tensor, drawn: Tensor, kept: int, turned: bool) -> Tensor:
        h = h.contiguous()
        ctx.save_for_backward(h, weight, drawn)
        ctx.sizes, ctx.turned = (len(h), *weight.shape, kept, turned), turned
        size = (len(h), weight.shape[1])
        out = h.new_empty(size[::-1] if turned else size)
        _call("sparse_forward", (h, drawn, weight, bias, out), ctx.sizes)
        return out.T if turned else out

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> Any:
        h, weight, drawn = ctx.saved_tensors
        slope = (slopes[0].T if ctx.turned else slopes[0]).contiguous()
        dh, dw = torch.empty_like(h), torch.empty_like(weight)
        _call("sparse_backward", (h, drawn, weight, slope, dh, dw), ctx.sizes)
        return dh, dw, slope.sum(1 if ctx.turned else 0), None, None, None


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
