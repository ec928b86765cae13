"""MNIST addition: sums of digits, training without labels of digits, resuming, and the files of MNIST."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from experiments.mnist_add.app import main
from experiments.mnist_add.images import load_mnist, load_small
from experiments.mnist_add.report import page, summary
from experiments.mnist_add.sums import SumReader, digits_of_sum, draw_rows
from experiments.mnist_add.training import Settings, measure, read, train, validate
from experiments.provenance import write_json
from semprola.errors import FormatError, SemprolaError


@pytest.mark.parametrize("digits", [1, 2, 15])
def test_sums(digits):
    table = torch.randint(0, 10, (50, 2 * digits), generator=torch.Generator().manual_seed(0))
    for row, total in zip(table.tolist(), digits_of_sum(table).tolist(), strict=True):
        first, second = (int("".join(map(str, part))) for part in (row[:digits], row[digits:]))
        assert int("".join(map(str, total))) == first + second


def test_the_layer_gives_the_probability_of_a_sum():
    model = SumReader(2)
    logits = torch.randn(1, 4, 10)
    p = logits[0].softmax(-1)
    expected = sum(p[0, a // 10] * p[1, a % 10] * p[2, (57 - a) // 10] * p[3, (57 - a) % 10] for a in range(58))
    torch.testing.assert_close(model.log_prob(logits, torch.tensor([[0, 5, 7]])).exp()[0], expected)


def test_training_resumes(tmp_path):
    images, test = load_small()
    images = images.take(torch.arange(200))
    settings = Settings(1, epochs=3, batch=8, average=0.9, lr=2e-3)
    model, figures = train(settings, 0, images, quiet=True)
    logits = read(model, test)
    found = measure(model, logits, test, 1, 0)
    assert figures["losses"][-1] < figures["losses"][0]
    assert found["rows"] == 150
    assert 0 <= found["most_probable_sum"] <= 100
    assert abs(validate(model, logits, test, 1) - found["sums"]) < 10
    checkpoint = tmp_path / "run.pt"
    for _ in range(settings.epochs):  # stopped after every epoch
        again, resumed = train(settings, 0, images, checkpoint=checkpoint, seconds=0.0, quiet=True)
    assert resumed["losses"] == figures["losses"]
    assert all(torch.equal(a, b) for a, b in zip(again.parameters(), model.parameters(), strict=True))
    rows = draw_rows(images, 1, 0)
    assert sorted(rows.images.flatten().tolist()) == list(range(200))


def test_sums_of_many_single_digits(tmp_path):
    images, test = load_small()
    images = images.take(torch.arange(200))
    settings = Settings(1, epochs=2, batch=4, numbers=5)
    model, figures = train(settings, 0, images, quiet=True)
    assert figures["losses"][-1] < figures["losses"][0]
    rows = draw_rows(images, 1, 0, numbers=5)
    assert rows.images.shape == (40, 5)
    assert rows.sums.tolist() == images.digits[rows.images].sum(1, keepdim=True).tolist()
    found = measure(model, read(model, test), test, 1, 0, numbers=5)
    assert found["rows"] == 60
    run = {"seed": 0, "test": found, "settings": settings.record(), **figures, "provenance": {"command": "c"}}
    write_json(tmp_path / "sum5.json", {"digits": 5, "runs": [run]})
    assert "From sums of 5 single digits, of which there are 12,000 to train on" in page(tmp_path)
    assert "numbers" not in Settings(1).record()


def test_files_of_mnist(tmp_path):
    with pytest.raises(SemprolaError, match="pass --data FOLDER"):
        load_mnist(None)
    with pytest.raises(SemprolaError, match=r"has neither train-images-idx3-ubyte nor train-images-idx3-ubyte\.gz"):
        load_mnist(tmp_path)
    header = np.array([2051, 2, 28, 28], ">i4").tobytes()
    (tmp_path / "train-images-idx3-ubyte").write_bytes(header + bytes(2 * 784))
    (tmp_path / "train-labels-idx1-ubyte").write_bytes(np.array([2049, 2], ">i4").tobytes() + bytes([5, 0]))
    with pytest.raises(FormatError, match="not the 60,000 images"):
        load_mnist(tmp_path)


def test_the_page_counts_all_seeds(tmp_path, monkeypatch):
    run = {"test": {"digits": 99.0, "most_probable_sum": 97.5}, "seconds_per_epoch": 5.0, "share_of_time_in_layer": 0.1}
    run |= {
        "settings": {"digits": 1, "lr": 0.001},
        "provenance": {"command": "python -m experiments mnist-add --digits 1"},
    }
    runs = [{**run, "seed": seed, "test": {**run["test"], "sums": sums}} for seed, sums in enumerate([97.0, 99.0])]
    write_json(tmp_path / "n1.json", {"digits": 1, "runs": runs})
    text = page(tmp_path)
    assert "| 1 | 2 | 98.00 ± 1.41 | 99.00 ± 0.00 | 5.0 | 10 % | DeepProbLog 97.2 |" in text
    assert "python -m experiments mnist-add" in text
    assert "N=1: 98.00 ± 1.41 % of sums over 2 seeds" in summary(1, runs)
    monkeypatch.setattr("experiments.mnist_add.app.PAGE", tmp_path / "page.md")
    assert main(["--report", "--out", str(tmp_path)]) == 0
    assert (tmp_path / "page.md").read_text(encoding="utf-8") == text


def test_help(capsys):
    with pytest.raises(SystemExit):
        main(["--help"])
    assert "--quick" in capsys.readouterr().out
