"""Checkpoints: everything that a run needs to resume and reach the same result."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from semprola._files import write_atomically
from semprola.errors import FormatError
from semprola.training.settings import History


def save_checkpoint(
    path: Path, key: str, model: Any, optimizer: torch.optim.Optimizer, history: History, best: dict[str, Any]
) -> None:
    """Write a checkpoint; the previous one stays intact until this one is complete."""
    content = {
        "key": key,
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "best": best,
        "history": asdict(history),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, lambda out: torch.save(content, out))


def load_checkpoint(
    path: Path, key: str, model: Any, optimizer: torch.optim.Optimizer
) -> tuple[History, dict[str, Any]]:
    """Put model and optimiser into the state of a checkpoint; returns the history and the best parameters."""
    try:
        content = torch.load(path, weights_only=True, map_location="cpu")
        if content["key"] != key:
            raise FormatError(f"{path}: the checkpoint belongs to other settings: remove it, or choose another folder")
        model.load_state_dict(content["model"])
        optimizer.load_state_dict(content["optimizer"])
        return History(**content["history"]), dict(content["best"])
    except FormatError:
        raise
    except Exception as error:  # a damaged archive can raise almost anything
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise FormatError(f"{path}: not a checkpoint that can be resumed ({reason}): remove it") from None
