"""The layers inside PyTorch's machinery: torch.compile, distributed training, function transforms of gradients."""

import os
import time

import pytest
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from selection import extensive
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import semprola as sp

PETS = "(cat -> animal) & (dog -> animal)"


def network(kind):
    torch.manual_seed(0)
    layer = {
        "spl": lambda: sp.SPL(8, sp.constraints.permutation(3)),
        "spl-mk": lambda: sp.SPL(8, sp.constraints.permutation(3), replicas=2, units=2, gate=(8,)),
        "product": lambda: sp.ProductSPL(8, sp.constraints.permutation(3), mixtures=2),
        "hmm": lambda: sp.ProductSPL(8, sp.constraints.permutation(3), q="hmm"),
    }[kind]()
    return nn.Sequential(nn.Linear(5, 8), nn.ReLU(), layer)


class TestCompile:
    @pytest.mark.parametrize(
        ("kind", "backend"),
        [
            extensive(("spl", "inductor")),
            ("spl-mk", "aot_eager"),
            ("product", "aot_eager"),
            extensive(("hmm", "aot_eager")),
        ],
    )
    def test_training_step_in_one_graph(self, kind, backend):
        model = network(kind)
        x = torch.randn(16, 5)
        y = model(x).sample()

        def step(x, y):
            return -model(x).log_prob(y).mean()

        torch._dynamo.reset()
        compiled = torch.compile(step, fullgraph=True, backend=backend)
        started = time.process_time()
        loss = compiled(x, y)
        loss.backward()
        assert time.process_time() - started < 120  # traced level by level it takes minutes
        gradients = [w.grad.clone() for w in model.parameters()]
        model.zero_grad()
        expected = step(x, y)
        expected.backward()
        torch.testing.assert_close(loss, expected)
        for gradient, w in zip(gradients, model.parameters(), strict=True):
            torch.testing.assert_close(gradient, w.grad)

    def test_semantic_loss(self):
        loss = sp.losses.SemanticLoss(PETS)
        logits = torch.randn(4, 3)
        torch._dynamo.reset()
        torch.testing.assert_close(torch.compile(loss, fullgraph=True, backend="aot_eager")(logits), loss(logits))


class TestHigherOrder:
    def test_gradient_of_a_gradient(self):
        layer = sp.SPL(3, PETS, units=2).double()
        y = torch.tensor([[1.0, 1.0, 0.0]], dtype=torch.float64)
        z = torch.randn(1, 3, dtype=torch.float64, requires_grad=True)
        assert torch.autograd.gradgradcheck(lambda z: layer(z).log_prob(y), (z,))

    def test_product(self):
        layer = sp.ProductSPL(3, PETS, mixtures=2).double()
        z = torch.randn(2, 3, dtype=torch.float64, requires_grad=True)
        assert torch.autograd.gradgradcheck(lambda z: layer(z).log_partition, (z,))


class TestDistributed:
    @pytest.mark.extensive
    def test_two_gloo_processes_agree_with_one(self, tmp_path):
        """Each process sees half the batch; the averaged gradient is that of the whole batch."""
        mp.spawn(_train, args=(str(tmp_path),), nprocs=2)
        halves = [torch.load(tmp_path / f"{rank}.pt", weights_only=True) for rank in range(2)]
        for a, b in zip(*halves, strict=True):
            torch.testing.assert_close(a, b)
        model = network("spl-mk")
        x, y = _batch(model)
        (-model(x).log_prob(y).mean()).backward()
        for gradient, w in zip(halves[0], model.parameters(), strict=True):
            torch.testing.assert_close(gradient, w.grad)


def _batch(model):
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(8, 5, generator=generator)
    return x, model(x).sample(generator=generator)


def _train(rank, folder):
    torch.set_num_threads(1)
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    dist.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=2)
    try:
        model = network("spl-mk")
        x, y = _batch(model)
        parallel = DistributedDataParallel(model)
        half = slice(4 * rank, 4 * rank + 4)
        (-parallel(x[half]).log_prob(y[half]).mean()).backward()
        torch.save([w.grad for w in model.parameters()], f"{folder}/{rank}.pt")
    finally:
        dist.destroy_process_group()
