"""Models in folders: what is saved comes back, and what is damaged or does not fit is refused in one line."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import semprola as sp

pytest.importorskip("safetensors")

RULES = "(cat -> animal) & (dog -> animal)"


def network(**options: Any) -> nn.Module:
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), sp.SPL(8, RULES, **options))


@pytest.mark.parametrize(
    "model",
    [
        network(),
        network(components=2, units=2, mixing="elementwise", gate=(5, 6), dropout=0.2),
        network().double(),
        network(known_states=torch.tensor([[1, 1, 0], [0, 0, 0], [1, 1, 0]])),
        nn.Sequential(nn.Linear(4, 3), sp.ConstraintLayer(RULES)),
        sp.ProductSPL(4, RULES, components=3),
        sp.ProductSPL(4, sp.compile(sp.parse(RULES), backend="sdd"), q="vtree", units=2),
        sp.ProductSPL(4, sp.compile(sp.parse(RULES), backend="topdown"), q="hmm", units=3),
        sp.SPL(4, RULES, gate=nn.Linear),
        nn.Sequential(
            nn.Unflatten(1, (1, 2, 2)),
            nn.Conv2d(1, 3, 2, padding=1, bias=False),
            nn.BatchNorm2d(3),
            nn.GELU(approximate="tanh"),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Dropout(0.3),
            nn.LayerNorm(3),
            nn.Sequential(nn.LeakyReLU(0.2), nn.PReLU(), nn.GroupNorm(1, 3), nn.ELU(), nn.Tanh(), nn.Softplus()),
            nn.Linear(3, 5, bias=False),
            sp.SPL(5, sp.constraints.permutation(2)),
        ),
    ],
    ids=lambda model: type(model).__name__,
)
def test_round_trip(model: nn.Module, tmp_path: Path) -> None:
    sp.save(model, tmp_path / "model")
    again = sp.load(tmp_path / "model")
    assert not again.training
    model.eval()
    x = torch.randn(6, 4, dtype=next(model.parameters()).dtype)
    torch.testing.assert_close(again(x).mean, model(x).mean, rtol=0, atol=0)
    assert {path.suffix for path in (tmp_path / "model").iterdir()} == {".json", ".safetensors", ".sp"}
    assert torch.equal(torch.random.get_rng_state(), (sp.load(tmp_path / "model"), torch.random.get_rng_state())[1])


class Own(nn.Module, sp.saving.Pretrained):
    def __init__(self, circuit: sp.Circuit, width: int = 8, *, names: list[str] | None = None) -> None:
        super().__init__()
        self.names = names
        self.body = nn.Linear(4, width)
        self.layer = sp.SPL(width, circuit)

    def forward(self, x: torch.Tensor) -> Any:
        return self.layer(self.body(x))


def test_networks_of_ones_own(tmp_path: Path) -> None:
    circuit = sp.compile(sp.parse(RULES))
    model = Own(circuit, 5, names=["a", "b"])
    folder = model.save_pretrained(tmp_path / "own")
    again = Own.from_pretrained(folder)
    assert again.names == ["a", "b"]
    x = torch.randn(3, 4)
    assert torch.equal(again(x).mean, model(x).mean)
    with pytest.raises(sp.FormatError, match="a Own, which only your program can build"):
        sp.load(folder)
    assert torch.equal(sp.load(folder, Own(circuit, 5))(x).mean, model(x).mean)
    with pytest.raises(sp.FormatError, match=r"does not fit: 'body.weight' has shape \[5, 4\] in the file, \[6, 4\]"):
        Own.from_pretrained(folder, width=6)
    with pytest.raises(sp.FormatError, match="constraint is not the one that was saved"):
        sp.load(folder, Own(sp.compile(sp.parse("cat | dog | animal")), 5))
    with pytest.raises(sp.FormatError, match="not saved"):
        Unused(circuit).save_pretrained(tmp_path / "unused")
    with pytest.raises(sp.FormatError, match="argument 'circuit' is a Module"):
        Unused(nn.Module()).save_pretrained(tmp_path / "unused")
    with pytest.raises(sp.FormatError, match="holds Own, not Unused"):
        Unused.from_pretrained(folder)


class Unused(nn.Module, sp.saving.Pretrained):
    def __init__(self, circuit: Any) -> None:
        super().__init__()
        self.body = nn.Linear(2, 2)


@pytest.mark.parametrize("kind", ["labels", "classes", "names", "family"])
def test_estimators(kind: str, tmp_path: Path) -> None:
    pytest.importorskip("sklearn")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    y: Any = np.stack([X[:, 0] > 1, X[:, 1] > 2, X[:, 0] > 0], axis=1).astype(int)
    y[:, 2] = y.max(1)
    rules: Any = RULES.replace(" & ", "\n")
    if kind == "classes":
        rules, y = None, np.array(["low", "high"])[y[:, 2]]
    if kind == "family":
        rules = sp.constraints.hierarchy([("cat", "animal"), ("dog", "animal")])
    labels = None if kind == "classes" else ["cat", "dog", "animal"]
    if kind == "names":
        X = pytest.importorskip("pandas").DataFrame(X, columns=["a", "b", "c"])
    model = sp.sklearn.SPLClassifier(rules, labels, epochs=3, hidden=(4,), random_state=0).fit(X, y)
    sp.save(model, tmp_path / "model")
    again = sp.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    assert again.predict(X).dtype == model.predict(X).dtype
    assert list(getattr(again, "feature_names_in_", [])) == list(getattr(model, "feature_names_in_", []))
    again.fit(X, y)  # its parameters are whole
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))


def test_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A new folder goes, and a model that was there stays."""
    layer = sp.SPL(3, "a -> b")
    old = sp.save(layer, tmp_path / "old")

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("semprola.saving.folders.write_atomically", full)
    for folder in (old, tmp_path / "new"):
        with pytest.raises(OSError, match="No space left"):
            sp.save(sp.SPL(3, "a | b | c"), folder)
    assert sp.load(old).labels == ("a", "b")
    assert not (tmp_path / "new").exists()
    assert sorted(path.name for path in old.iterdir()) == ["circuit-0.sp", "model.json", "weights.safetensors"]


def test_what_a_killed_call_left_behind_is_no_obstacle(tmp_path: Path) -> None:
    (tmp_path / ".saving-x").mkdir()
    assert sp.load(sp.save(sp.SPL(3, "a -> b"), tmp_path)).labels == ("a", "b")


def test_what_is_damaged_is_refused(tmp_path: Path) -> None:
    good = sp.save(network(), tmp_path / "good")
    content = json.loads((good / "model.json").read_text())

    def said(change: Any) -> str:
        bad = tmp_path / "bad"
        shutil.rmtree(bad, ignore_errors=True)
        shutil.copytree(good, bad)
        change(bad)
        with pytest.raises(sp.FormatError) as raised:
            sp.load(bad)
        assert "\n" not in str(raised.value)
        return str(raised.value)

    def index(**changes: Any) -> Any:
        return lambda folder: (folder / "model.json").write_text(json.dumps({**content, **changes}))

    assert "no model here" in said(lambda folder: os.unlink(folder / "model.json"))
    assert "model.json: not JSON" in said(lambda folder: (folder / "model.json").write_text("{"))
    assert "model.json: not JSON" in said(lambda folder: (folder / "model.json").write_text("[" * 100_000))
    assert "not the index of a semprola model" in said(index(format="other"))
    assert "format version 2, written by semprola" in said(index(version=2))
    assert "weights.safetensors: missing" in said(lambda folder: os.unlink(folder / "weights.safetensors"))
    assert "weights.safetensors: damaged" in said(lambda folder: (folder / "weights.safetensors").write_bytes(b"x"))
    assert "circuit-0.sp: damaged" in said(lambda folder: (folder / "circuit-0.sp").write_bytes(b"x"))
    assert "does not list the files" in said(index(files=[]))
    assert "has a 'Popen'" in said(index(network={"class": "Popen", "options": {}}))
    assert "damaged" in said(index(network={"class": "Linear", "options": {"in_features": "x"}}))
    assert "damaged" in said(index(network={"class": "SPL", "options": {"in_features": 8}, "circuit": 7}))
    other = {
        "class": "Sequential",
        "children": [["0", {"class": "ReLU", "options": {}}], *content["network"]["children"][1:]],
    }
    assert "does not fit: '0.bias' is unknown" in said(index(network=other))
    deep: Any = content["network"]
    for _ in range(60):
        deep = {"class": "Sequential", "children": [["0", deep]]}
    assert "damaged" in said(index(network=deep))
    assert "damaged" in said(index(dtype="load"))


def test_where_a_model_cannot_go(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(sp.FormatError, match="the folder holds something else"):
        sp.save(network(), tmp_path)
    with pytest.raises(sp.FormatError, match="a model is saved to a folder"):
        sp.save(network(), tmp_path / "file")
    with pytest.raises(TypeError, match="a torch module or an SPLClassifier, not int"):
        sp.save(3, tmp_path / "model")
    sp.save(network(), tmp_path / "model")
    sp.save(network(components=2), tmp_path / "model", metadata={"note": "second"})
    assert sp.load(tmp_path / "model")[2].components == 2
