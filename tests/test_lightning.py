"""Training with Lightning: the same steps as `fit`, also in two processes."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(importlib.util.find_spec("lightning") is None, reason="needs the extra `lightning`")

_SCRIPT = """
import os, sys, warnings
warnings.simplefilter("ignore")
import lightning.pytorch as pl
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
import semprola as sp
from semprola.lightning import SPLModule
from semprola.training import fit

devices, out = int(sys.argv[1]), sys.argv[2]
generator = torch.Generator().manual_seed(0)
x = torch.randn(96, 4, generator=generator)
y = (x[:, :3] > 0).float()
y[:, 2] = y.amax(1)
y[::5, 1] = float("nan")
weight = torch.rand(96, generator=generator)


def network():
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), sp.SPL(8, "(a -> c) & (b -> c)", labels=["a", "b", "c"]))


class Rows(torch.utils.data.Dataset):
    def __len__(self):
        return 96

    def __getitem__(self, i):
        return x[i], y[i], weight[i]


def collate(rows):
    x, y, weight = (torch.stack(part) for part in zip(*rows))
    return x, y, None, weight


model = network()
module = SPLModule(model, lr=1e-2, schedule="cosine", warmup=2)
trainer = pl.Trainer(
    max_epochs=3, accelerator="cpu", devices=devices, strategy="ddp" if devices > 1 else "auto", logger=False,
    enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False, use_distributed_sampler=False,
)
rank = int(os.environ.get("LOCAL_RANK", 0))
sampler = torch.utils.data.DistributedSampler(Rows(), num_replicas=devices, rank=rank, shuffle=False)
loader = DataLoader(Rows(), batch_size=24 // devices, collate_fn=collate, sampler=sampler)
valid = DataLoader(TensorDataset(x, y), batch_size=96)
trainer.fit(module, loader, valid)
if trainer.is_global_zero:
    found = torch.cat([p.detach().flatten() for p in model.parameters()])
    torch.save({"parameters": found, "valid": float(trainer.callback_metrics["valid_log_prob"])}, out)
"""


@pytest.mark.extensive
def test_one_and_two_processes_take_the_same_steps(tmp_path: Path) -> None:
    import torch

    (tmp_path / "script.py").write_text(_SCRIPT)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"}
    for devices in ("1", "2"):
        command = [sys.executable, str(tmp_path / "script.py"), devices, str(tmp_path / devices)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=280)
        assert done.returncode == 0, done.stderr[-2000:]
    one, two = (torch.load(tmp_path / devices, weights_only=True) for devices in ("1", "2"))
    torch.testing.assert_close(one["parameters"], two["parameters"], rtol=0, atol=1e-5)
    assert two["valid"] == pytest.approx(one["valid"], abs=1e-5)


@pytest.mark.extensive
@pytest.mark.filterwarnings("ignore")
def test_bad_input() -> None:
    import torch

    import semprola as sp
    from semprola.lightning import SPLModule

    with pytest.raises(ValueError, match="lr must not be negative"):
        SPLModule(sp.SPL(4, "cat -> animal"), lr=-1.0)
    with pytest.raises(TypeError, match="speed"):
        SPLModule(sp.SPL(4, "cat -> animal"), speed=3)
    module = SPLModule(sp.SPL(4, "cat -> animal"))
    with pytest.raises(ValueError, match="the loss is inf at step 0: does a label break the constraint"):
        module.training_step((torch.zeros(1, 4), torch.tensor([[1.0, 0.0]])), 0)


@pytest.mark.extensive
@pytest.mark.filterwarnings("ignore")
def test_predict_takes_the_loaders_of_tensors() -> None:
    import lightning.pytorch as pl
    import torch
    from torch.utils.data import DataLoader, TensorDataset

    import semprola as sp
    from semprola.lightning import SPLModule

    x, y = torch.randn(10, 4), torch.tensor([[0.0, 1.0]]).expand(10, 2)
    layer = sp.SPL(4, "cat -> animal")
    trainer = pl.Trainer(accelerator="cpu", logger=False, enable_progress_bar=False, enable_model_summary=False)
    for rows in (TensorDataset(x), TensorDataset(x, y), x):
        found = trainer.predict(SPLModule(layer), DataLoader(rows, batch_size=4))  # type: ignore[arg-type, var-annotated]
        assert torch.equal(torch.cat([p.mode for p in found]), layer(x).mode)
    inputs = sp.SPL(4, sp.compile("a <-> x", given=["x"]))
    given = torch.tensor([[0.0], [1.0]]).repeat(5, 1)
    found = trainer.predict(SPLModule(inputs), DataLoader(TensorDataset(x, y[:, :1], given), batch_size=4))
    assert torch.equal(torch.cat([p.mode for p in found]), given)
