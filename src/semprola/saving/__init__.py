"""Models in folders: weights as safetensors, the architecture as JSON, constraints as circuits. No pickle."""

from semprola.saving.folders import load, save
from semprola.saving.pretrained import Pretrained

__all__ = ["Pretrained", "load", "save"]
