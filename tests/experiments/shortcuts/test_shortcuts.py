"""Reasoning shortcuts on generated images: rows, layers, scores and the page."""

import math

import pytest
import torch

from experiments.mnist_add.images import Images
from experiments.provenance import write_json
from experiments.shortcuts.app import main
from experiments.shortcuts.readers import PairReader, digit_chances, sum_chances
from experiments.shortcuts.report import METHODS, page
from experiments.shortcuts.rows import PAIRS, TEST, TRAIN, VALID, VALUES, draw_task, pairs_of, wrong_readings
from experiments.shortcuts.training import Settings, calibration_error, run


def _images(per_digit, seed):
    generator = torch.Generator().manual_seed(seed)
    digits = torch.arange(10).repeat_interleave(per_digit)
    x = 0.1 * torch.rand(len(digits), 1, 28, 28, generator=generator)
    for i, digit in enumerate(digits.tolist()):
        x[i, 0, 2 * digit : 2 * digit + 6] = 1.0
    return Images(x, digits)


def test_rows():
    train, test = _images(30, 0), _images(10, 1)
    for name, pairs in PAIRS.items():
        task = draw_task(name, train, test, 0)
        seen = pairs_of(name)
        assert len(seen) == sum(1 if a == b else 2 for a, b in pairs)
        for images, rows, count in [(train, task.train, TRAIN), (train, task.valid, VALID), (test, task.seen, TEST)]:
            found = [tuple(pair) for pair in images.digits[rows].tolist()]
            assert {pair: found.count(pair) for pair in set(found)} == dict.fromkeys(seen, count)
        other = {tuple(pair) for pair in test.digits[task.unseen].tolist()}
        assert len(other) == VALUES[name] ** 2 - len(seen)
        assert not other & set(seen)
        assert not set(task.train.flatten().tolist()) & set(task.valid.flatten().tolist())
    # 2 may be read as 2, 3 or 4; evens and odds each have six readings
    assert [wrong_readings(name) for name in PAIRS] == [2, 6 * 6 - 1]


@pytest.mark.parametrize("kind", sorted({kind for kind, *_ in METHODS}))
def test_each_reader_knows_sums(kind):
    torch.manual_seed(0)
    model, images = PairReader(5, kind), torch.rand(3, 2, 1, 28, 28)
    p = model(images)
    digits, sums = digit_chances(p, 5), sum_chances(p, 5)
    torch.testing.assert_close(digits.sum(-1), torch.ones(3, 2))
    torch.testing.assert_close(sums.sum(-1), torch.ones(3))
    torch.testing.assert_close(p.log_prob_of({"sum": torch.tensor([1, 4, 8])}).exp(), sums[range(3), [1, 4, 8]])
    sure = p.condition({"sum": torch.tensor([0, 8, 1])})
    torch.testing.assert_close(digit_chances(sure, 5)[:2].argmax(-1), torch.tensor([[0, 0], [4, 4]]))
    assert 0 < float(sure.entropy()[2].detach()) < 0.7  # two ways to make 1


def test_calibration_error():
    chances = torch.tensor([[0.9, 0.1], [0.9, 0.1], [0.6, 0.4], [0.45, 0.55]])
    assert calibration_error(chances, torch.tensor([0, 1, 0, 0])) == pytest.approx((2 * 0.4 + 0.4 + 0.55) / 4)
    assert calibration_error(torch.eye(2), torch.tensor([0, 1])) == 0


def test_a_run_and_its_page(tmp_path, monkeypatch):
    made = _images(30, 0), _images(10, 1)
    found = run(Settings("half", "independent", 1.0, epochs=1, batch=512), 0, *made)
    assert set(found["seen"]) == {"sums", "digits", "calibration_error", "nats"}
    other = found | {"seed": 1, "seen": {"sums": 99.0, "digits": 40.0, "calibration_error": 5.0, "nats": 0.1}}
    runs = [each | {"settings": each["settings"] | {"task": task}} for each in (found, other) for task in PAIRS]
    assert math.isfinite(run(Settings("half", "independent", usage=1.0, epochs=1, batch=512), 0, *made)["losses"][0])
    content = {"wrong_readings": {"half": 2, "even-odd": 35}, "runs": runs}
    text = page(content)
    assert "counts 35 wrong readings" in text
    assert "| independent digits, with the entropy | " in text
    assert "over 2 seeds" in text
    write_json(tmp_path / "shortcuts.json", content)
    monkeypatch.setattr("experiments.shortcuts.app.PAGE", tmp_path / "page.md")
    assert main(["--report", "--out", str(tmp_path / "shortcuts.json")]) == 0
    assert (tmp_path / "page.md").read_text(encoding="utf-8") == text
