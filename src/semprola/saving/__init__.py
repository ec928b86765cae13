"""Models in folders: safetensors for numbers, JSON for how they are built, circuits for what must hold. No pickle."""

from semprola.saving.folders import load, save
from semprola.saving.pretrained import Pretrained

__all__ = ["Pretrained", "load", "save"]
