"""Sequences of tags that obey rules: the rules, the chains, the layer, its distribution and its export."""

from semprola.sequences.distribution import SequenceDistribution
from semprola.sequences.layer import SequenceSPL

__all__ = ["SequenceDistribution", "SequenceSPL"]
