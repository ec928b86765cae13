"""The trainer's objective as a LightningModule, for training with Lightning. Needs the extra `lightning`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from semprola.training import FitSettings
from semprola.training.data import as_batch
from semprola.training.metrics import observed_exact
from semprola.training.objective import Objective, log_likelihood, predict
from semprola.training.parallel import Team
from semprola.training.validation import quick_mode

try:
    from lightning.pytorch import LightningModule
except ImportError:
    raise ImportError("semprola.lightning needs Lightning: pip install 'semprola[lightning]'") from None


class SPLModule(LightningModule):
    """Trains a network that returns distributions by maximum likelihood, as :func:`semprola.training.fit` does.

    Batches are tuples (x, y), (x, y, given) or (x, y, given, weight). Labels that are NaN are unobserved. To predict, y
    may be left out, and the answer is one distribution per batch. The module logs "train_loss", "valid_exact" and
    "valid_log_prob". Lightning's Trainer is responsible for the number of epochs, early stopping, precision, gradient
    clipping and checkpoints.

    Args:
        model: the network, as for `fit`.
        settings: `lr`, `weight_decay`, `schedule`, `warmup`, `penalty_from` and `label_weight` are used.
        **changes: individual settings, by name; they override `settings`.

    Example:
        >>> import semprola as sp
        >>> module = SPLModule(sp.SPL(4, "cat -> animal"), lr=1e-2)
        >>> module(torch.zeros(3, 4)).mode.shape
        torch.Size([3, 2])
    """

    def __init__(self, model: nn.Module, settings: FitSettings | None = None, **changes: Any) -> None:
        super().__init__()
        self.settings = replace(settings or FitSettings(), **changes)
        weight = self.settings.label_weight
        weights = None if weight is None else torch.as_tensor(weight, dtype=torch.float32)
        self.objective = Objective(model, weights, self.settings.pool_samples)

    @property
    def model(self) -> nn.Module:
        """The network."""
        return self.objective.model

    def forward(self, x: Tensor, given: Tensor | None = None) -> Any:
        """The distribution over y for inputs x."""
        return self.model(x) if given is None else self.model(x, given)

    def training_step(self, batch: Any, batch_idx: int) -> Tensor:
        """The loss of a batch; averaged over several processes, it is the loss over all their rows."""
        rows, factor = Team().share(as_batch(batch), whole=False)
        loss: Tensor = self.objective(rows, penalize=self.global_step >= self.settings.penalty_from) * factor
        if not bool(loss.isfinite()):
            raise ValueError(
                f"the loss is {float(loss)} at step {self.global_step}: does a label break the constraint?"
            )
        self.log("train_loss", loss.detach(), batch_size=len(rows.x), sync_dist=True)
        return loss

    def validation_step(self, batch: Any, batch_idx: int) -> None:
        """Exact match and log-likelihood of a batch."""
        rows = as_batch(batch)
        p = predict(self.model, rows)
        figures: dict[str, Any] = {
            "valid_exact": observed_exact(quick_mode(p), rows.y),
            "valid_log_prob": log_likelihood(p, rows.y).mean(),
        }
        self.log_dict(figures, batch_size=len(rows.x), sync_dist=True, prog_bar=True)

    def predict_step(self, batch: Any, batch_idx: int) -> Any:
        """The distribution over y for a batch x, (x,), (x, y), (x, y, given) or (x, y, given, weight); ignores y."""
        parts = batch if isinstance(batch, tuple | list) else (batch,)
        return self(parts[0], parts[2] if len(parts) > 2 else None)

    def configure_optimizers(self) -> Any:
        """AdamW with the schedule of the settings."""
        settings = self.settings
        optimizer = torch.optim.AdamW(self.parameters(), lr=settings.lr, weight_decay=settings.weight_decay)
        if settings.schedule == "constant" and not settings.warmup:
            return optimizer
        steps = int(self.trainer.estimated_stepping_batches)
        scale = 1 / settings.lr if settings.lr else 0.0
        schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: settings.rate(step, steps) * scale)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}
