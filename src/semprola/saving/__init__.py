"""Models in folders: weights as safetensors, the architecture as JSON, constraints as circuits. No pickle."""

from semprola.saving.cards import model_card
from semprola.saving.folders import load, save
from semprola.saving.hub import from_pretrained, push_to_hub
from semprola.saving.pretrained import Pretrained

__all__ = ["Pretrained", "from_pretrained", "load", "model_card", "push_to_hub", "save"]
