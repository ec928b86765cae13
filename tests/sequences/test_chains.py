"""Chains: what they cache stays with their device."""

import torch

from semprola.sequences.chains import Chain


def test_reachable_nodes_are_on_the_chains_device() -> None:
    chain = Chain([[0, 1], [0, -1]], [True, True])
    chain.possible_nodes(3)
    elsewhere = chain.on(torch.device("meta"))
    assert elsewhere.possible_nodes(3).device.type == "meta"
    assert chain.possible_nodes(3).device.type == "cpu"
