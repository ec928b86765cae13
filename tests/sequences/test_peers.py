"""Without rules SequenceSPL is a linear-chain CRF: the same numbers as pytorch-crf, where that is installed."""

from __future__ import annotations

import pytest
import torch

import semprola as sp

torchcrf = pytest.importorskip("torchcrf")


@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("batch", [1, 16])
def test_the_same_likelihood_gradients_and_best_tags(batch: int, padded: bool) -> None:
    crf = torchcrf.CRF(7, batch_first=True)
    layer = sp.SequenceSPL(7)
    with torch.no_grad():
        for parameter in crf.parameters():
            parameter.normal_()
    layer.load_state_dict(
        {
            "start": crf.start_transitions,
            "transitions": crf.transitions,
            "end": crf.end_transitions,
            "_extra_state": layer.get_extra_state(),
        }
    )
    logits = torch.randn(batch, 20, 7)
    y = torch.randint(7, (batch, 20))
    lengths = torch.randint(1, 21, (batch,)) if padded else torch.full((batch,), 20)
    mask = torch.arange(20) < lengths[:, None]
    mine, theirs = logits.clone().requires_grad_(), logits.clone().requires_grad_()
    log_prob = layer(mine, lengths).log_prob(y)
    expected = crf(theirs, y, mask=mask, reduction="none")
    torch.testing.assert_close(log_prob, expected, rtol=1e-4, atol=1e-4)
    log_prob.sum().backward()
    expected.sum().backward()
    torch.testing.assert_close(mine.grad, theirs.grad, rtol=1e-3, atol=1e-4)
    pairs = [("start", "start_transitions"), ("transitions", "transitions"), ("end", "end_transitions")]
    for name, other in pairs:
        torch.testing.assert_close(getattr(layer, name).grad, getattr(crf, other).grad, rtol=1e-3, atol=1e-3)
    found = [row[:length].tolist() for row, length in zip(layer(logits, lengths).mode, lengths, strict=True)]
    assert found == crf.decode(logits, mask=mask)
