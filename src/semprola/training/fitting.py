"""The trainer: minibatches, AdamW, early stopping, and checkpoints that resume to the same result."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from semprola.compiler.splitting import Split
from semprola.errors import SemprolaError
from semprola.training.checkpoints import load_checkpoint, save_checkpoint
from semprola.training.data import Batch, as_batch, as_source, mixed
from semprola.training.networks import start_new_layer
from semprola.training.objective import Objective
from semprola.training.parallel import Team, started
from semprola.training.progress import ProgressBar
from semprola.training.settings import FitSettings, History, Look
from semprola.training.targets import by_name
from semprola.training.validation import evaluate, has_likelihood, violating

Callback = Callable[[Look], bool | None]


def fit(
    model: nn.Module,
    train: Any,
    valid: Any = None,
    settings: FitSettings | None = None,
    *,
    seed: int = 0,
    start_at_labels: bool = True,
    checkpoint: str | Path | None = None,
    callbacks: Sequence[Callback] = (),
    progress: ProgressBar | bool = False,
    **changes: Any,
) -> History:
    """Train in place by maximum likelihood; the model ends with the parameters that were best on the validation rows.

    Labels that are NaN are unobserved; rows that have some are trained by the marginal likelihood of their observed
    labels. The order of rows and the randomness of a step depend only on the seed and the step. So a run that is
    resumed from a checkpoint ends with the same parameters as an uninterrupted one, and processes started by torchrun
    reach the same result as a single process up to rounding (except with dropout, which each process draws itself).

    Args:
        model: a module that returns a distribution: ``model(x)``, or ``model(x, given)`` if the rows have inputs of the
            constraint. If it has a method ``loss(x, y, given, penalize=)``, that is minimised instead of the negative
            log-likelihood.
        train: a tuple (x, y), (x, y, given) or (x, y, given, weight) of tensors whose first dimension is the rows (y
            and given also as dicts or data frames, whose columns are matched by name), or a DataLoader that yields such
            tuples of tensors. Under torchrun, tensors are divided among the processes; a DataLoader must divide them
            itself (``DistributedSampler``).
        valid: the rows for choosing the best parameters, as a tuple; None to keep the last parameters. If the best
            are chosen by likelihood, all these rows must satisfy the constraint; if they are chosen by exact match, a
            row that violates it counts as wrong.
        settings: how to train; by default ``FitSettings()``.
        seed: seed of the order of rows and of dropout. The model's current parameters are the initial ones, except as
            follows.
        start_at_labels: start a new layer at the frequencies of the training labels, as with
            ``layer.start_at(y, scale=1.0)``. A layer that was trained, loaded or started before is left as it is; so is
            one whose constraint has inputs, and every layer if the rows come from a DataLoader.
        checkpoint: a file to resume from if it exists, and to write at every evaluation.
        callbacks: called with a :class:`Look` after every evaluation; training stops if one returns True.
        progress: True to show the epoch, the loss, the score on validation rows and the time left; or your own
            `ProgressBar`.
        **changes: individual settings, by name: ``fit(model, train, valid, epochs=20, lr=1e-2)``.

    Returns:
        The history of losses and validation scores.

    Raises:
        FormatError: if the checkpoint is damaged or belongs to other settings.
        ViolationError: if validation rows violate the constraint and parameters are chosen by the likelihood; the
            message names the rows.
        SemprolaError: if the loss becomes NaN or infinite; the message names the rows of the batch that violate the
            constraint.
        TypeError: if the model is no module, or returns no distribution.
        ValueError: if a setting or the rows are invalid.

    Example:
        >>> import torch, semprola as sp
        >>> torch.manual_seed(0)
        <...>
        >>> x = torch.randn(200, 3)
        >>> y = torch.nn.functional.one_hot(x.argmax(1), 3).float()
        >>> layer = sp.ProductSPL(3, sp.one_hot(["a", "b", "c"]))
        >>> history = fit(layer, (x[:150], y[:150]), (x[150:], y[150:]), epochs=60, lr=0.1)
        >>> bool((layer(x[150:]).mode == y[150:]).all(1).float().mean() > 0.9)
        True
    """
    chosen = _changed(settings or FitSettings(), changes)
    with started() as team, torch.random.fork_rng(devices=[]):
        path = None if checkpoint is None else Path(checkpoint)
        begins = start_at_labels and (path is None or not path.is_file())
        run = _Run(model, train, valid, chosen, seed, team, begins)
        if isinstance(progress, ProgressBar):
            return run.go(path, callbacks, progress)
        quiet = not progress or not team.leads
        with ProgressBar("training", run.steps, quiet=quiet, per_epoch=run.each) as shown:
            return run.go(path, callbacks, shown)


class _Run:
    """One call of `fit`."""

    def __init__(
        self, model: nn.Module, train: Any, valid: Any, settings: FitSettings, seed: int, team: Team, begins: bool
    ) -> None:
        if not isinstance(model, nn.Module):
            raise TypeError(
                f"model must be an nn.Module that returns a distribution, not {type(model).__name__}: "
                "end it in a layer such as sp.SPL"
            )
        self.model, self.settings, self.seed, self.team = model, settings, seed, team
        train, valid = by_name(model, train), by_name(model, valid)
        self.source = as_source(train, settings.batch_size, seed)
        self.divided = not isinstance(train, tuple | list)
        self.valid = None if valid is None else as_batch(valid, "validation rows")
        if self.valid is not None and len(self.valid.x) == 0:
            raise ValueError("there are no validation rows: pass valid=None to keep the last parameters")
        self.each = self.source.batches_per_epoch()
        self.steps = settings.steps or settings.epochs * self.each
        self.every = settings.evaluate_every or self.each
        parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
        if not parameters:
            raise ValueError("the model has no parameters to train")
        self.device = parameters[0].device
        self.by_likelihood = settings.choose == "likelihood" and self._has_likelihood()
        if begins and not self.divided:
            torch.default_generator.manual_seed(seed)  # the same noise in every process
            start_new_layer(model, as_batch(train))
        self.optimizer = torch.optim.AdamW(
            parameters, lr=settings.lr, weight_decay=settings.weight_decay, fused=self.device.type in ("cpu", "cuda")
        )
        self.objective = team.wrap(Objective(model, _label_weight(settings, self.device), settings.pool_samples))
        self.history, self.best = History(), _copy(model.state_dict())

    def go(self, path: Path | None, callbacks: Sequence[Callback], progress: ProgressBar) -> History:
        key = _key(self.model, self.settings, self.seed)
        if path is not None and path.is_file():
            self.history, self.best = load_checkpoint(path, key, self.model, self.optimizer)
        history = self.history
        began, spent = time.perf_counter(), history.seconds
        step = history.step[-1] if history.step else 0
        batches = self.source.from_step(step)
        finished = step >= self.steps or self._gives_up()
        rows, last = 0, began
        while not finished:
            batch = next(batches)
            loss = self._step(batch, step)
            step, rows = step + 1, rows + len(batch.x)
            if step % self.every and step < self.steps:
                continue
            self._look(step, loss)
            now = time.perf_counter()
            history.seconds = spent + now - began
            look = Look(step, self.steps, loss, rows / max(now - last, 1e-9), self.model, history)
            rows, last = 0, now
            progress.show(look)
            if path is not None and self.team.leads:
                save_checkpoint(path, key, self.model, self.optimizer, history, self.best)
            # call every callback, even if an earlier one wants to stop
            wishes = [bool(callback(look)) for callback in callbacks]
            finished = step >= self.steps or self._gives_up() or self.team.agree(any(wishes))
        self.model.load_state_dict(self.best)
        self.model.eval()
        return history

    def _step(self, batch: Batch, step: int) -> float:
        """One gradient step, whose randomness depends only on the seed and the step."""
        self.model.train()
        # torch.manual_seed also prepares absent devices, which takes longer than a small step
        torch.default_generator.manual_seed(mixed(self.seed + 15_485_863 * self.team.rank, step))
        if self.device.type == "cuda":
            torch.cuda.manual_seed(mixed(self.seed + 15_485_863 * self.team.rank, step))
        rate = self.settings.rate(step, self.steps)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        mine, factor = self.team.share(batch.to(self.device), not self.divided)
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.settings.precision == "bfloat16"):
            loss: Tensor = self.objective(mine, penalize=step >= self.settings.penalty_from)
        if factor != 1.0:
            loss = loss * factor
        self.optimizer.zero_grad()
        loss.backward()
        if self.settings.clip is not None:
            nn.utils.clip_grad_norm_(self.optimizer.param_groups[0]["params"], self.settings.clip)
        self.optimizer.step()
        value = self.team.total(float(loss.detach()))
        if value != value or abs(value) == float("inf"):
            raise SemprolaError(f"the loss is {value} at step {step}: {self._reason(mine)}")
        return value

    @torch.no_grad()
    def _reason(self, batch: Batch) -> str:
        """Why the loss is not finite, judging by the rows."""
        if not bool(batch.x.isfinite().all()):
            return "the inputs x have infinities or NaN"
        circuit: Any = next((m.circuit for m in self.model.modules() if hasattr(m, "circuit")), None)
        if circuit is None or bool(batch.y.isnan().any()):
            return "labels violate the constraint, or lr is too large"
        given = None if batch.given is None else batch.given.cpu().numpy()
        splits: Any = (getattr(module, "split", None) for module in self.model.modules())
        split = next((each for each in splits if isinstance(each, Split)), None)
        y = batch.y.cpu().numpy()
        wrong = ~torch.as_tensor(circuit.satisfied(y, given) if split is None else split.satisfied(y))
        if not bool(wrong.any()):
            return "lr is too large"
        return violating(batch.y, wrong, circuit.labels, "rows of the batch")

    @torch.no_grad()
    def _look(self, step: int, loss: float) -> None:
        """Measure on the validation rows, and remember the parameters if they are the best so far."""
        history = self.history
        history.step.append(step)
        history.loss.append(loss)
        if self.valid is None:
            history.best_step = step
            self.best.update(_copy(self.model.state_dict()))
            return
        self.model.eval()
        score, log_prob = evaluate(self.model, self.valid, self.device)
        history.valid_exact.append(score)
        history.valid_log_prob.append(log_prob)
        if self.by_likelihood and not log_prob > float("-inf"):
            self._has_likelihood()  # raises an error that names the rows
        old = history.best_exact, history.best_log_prob
        if log_prob > old[1] if self.by_likelihood else (score, log_prob) > old:
            history.best_step, history.best_exact, history.best_log_prob = step, score, log_prob
            self.best.update(_copy(self.model.state_dict()))

    def _has_likelihood(self) -> bool:
        """Whether the validation rows can choose by likelihood; rows that are impossible are an error."""
        if self.valid is None:
            return True
        self.model.eval()
        return has_likelihood(self.model, self.valid, self.device)

    def _gives_up(self) -> bool:
        patience = self.settings.patience
        if patience is None or self.valid is None:
            return False
        return self.history.stale(self.settings.penalty_from) >= patience


def _changed(settings: FitSettings, changes: dict[str, Any]) -> FitSettings:
    known = [field.name for field in fields(FitSettings)]
    unknown = [name for name in changes if name not in known]
    if unknown:
        raise TypeError(f"fit has no setting {unknown[0]!r}; its settings are {', '.join(known)}")
    return replace(settings, **changes)


def _label_weight(settings: FitSettings, device: torch.device) -> Tensor | None:
    if settings.label_weight is None:
        return None
    weight = torch.as_tensor(settings.label_weight, dtype=torch.float32, device=device)
    if not bool((weight >= 0).all()):
        raise ValueError("label_weight must not be negative")
    if weight.dim() > 1:
        raise ValueError(f"label_weight must be one number, or one per label, not of shape {tuple(weight.shape)}")
    return weight


def _key(model: Any, settings: FitSettings, seed: int) -> str:
    """A text that identifies the run that a checkpoint belongs to."""
    described = model.describe() if callable(getattr(model, "describe", None)) else repr(model)
    if callable(settings.schedule):
        settings = replace(settings, schedule="constant", label_weight=settings.label_weight)
        described += " with a schedule of its own"
    return f"{described} {settings} seed={seed}"


def _copy(state: dict[str, Any]) -> dict[str, Any]:
    return {name: value.clone() if isinstance(value, Tensor) else value for name, value in state.items()}
