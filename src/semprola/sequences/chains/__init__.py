"""Evaluates chains: sequences whose positions depend on their neighbours, and on the state of an automaton."""

from semprola.sequences.chains.passes import Posterior, Sums, log_likelihood, log_partition, posterior, sums
from semprola.sequences.chains.search import best, draw, ranked
from semprola.sequences.chains.structure import Chain, Trellis

__all__ = [
    "Chain",
    "Posterior",
    "Sums",
    "Trellis",
    "best",
    "draw",
    "log_likelihood",
    "log_partition",
    "posterior",
    "ranked",
    "sums",
]
