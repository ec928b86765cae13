"""Networks for other runtimes: the same answers from standard operators, for any batch size."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import semprola as sp
from semprola import export

ANIMALS = "(cat -> animal) & (dog -> animal)"
CONSTRAINTS: dict[str, Any] = {
    "formula": sp.parse(f"{ANIMALS} | bird"),
    "free labels": sp.compile(sp.parse("a -> b"), labels=["a", "c", "b", "d"]),
    "one model": sp.parse("a & ~b"),
    "one hot": sp.one_hot(["a", "b", "c", "d"]),
    "zero-suppressed": sp.constraints.permutation(3),
    "cardinality": sp.constraints.cardinality([f"x{i}" for i in range(12)], at_least=2, at_most=5),
    "sdd": sp.compile(sp.parse("(a | b) & (b | c) & (~a | d) & (c ^ e)"), backend="sdd"),
    "top-down": sp.compile(sp.parse("(a | b) & (b | c) & (~a | d) & (c ^ e)"), backend="topdown"),
}
LAYERS: dict[str, Callable[[Any], nn.Module]] = {
    "single": lambda K: sp.SPL(6, K),
    "mixture": lambda K: sp.SPL(6, K, components=3, gate=(5,)),
    "product": lambda K: sp.ProductSPL(6, K),
    "product mixture": lambda K: sp.ProductSPL(6, K, components=2),
}
QUERIES: dict[str, Callable[[Any, Tensor], Tensor]] = {
    "mode": lambda p, y: p.mode,
    "mean": lambda p, y: p.mean,
    "log_prob": lambda p, y: p.log_prob(y),
    "hamming": lambda p, y: p.decode("hamming"),
}


def network(layer: nn.Module) -> nn.Module:
    return nn.Sequential(nn.Linear(5, 6), nn.ReLU(), nn.Dropout(0.5), layer).eval()


def inputs(net: nn.Module, count: int) -> tuple[Tensor, Tensor]:
    """Inputs, and label vectors of which some violate the constraint."""
    x = 3 * torch.randn(count, 5)
    with torch.no_grad():
        y = net(x).sample()
    y[::3] = torch.randint(2, y[::3].shape).to(y)
    return x, y


def answer(run: Any, what: str, x: Tensor, y: Tensor) -> Tensor:
    result: Tensor = run(x, y) if what == "log_prob" else run(x)
    return result


@pytest.mark.parametrize("constraint", CONSTRAINTS)
@pytest.mark.parametrize("kind", LAYERS)
def test_plain_operators_give_the_same_answers(constraint: str, kind: str) -> None:
    net = network(LAYERS[kind](CONSTRAINTS[constraint]))
    x, y = inputs(net, 40)
    with torch.no_grad():
        for what, query in QUERIES.items():
            got = answer(export.module(net, what), what, x, y)
            torch.testing.assert_close(got, query(net(x), y), rtol=1e-4, atol=1e-5)


def test_rules_for_logits() -> None:
    net = nn.Sequential(nn.Linear(5, 3), sp.ConstraintLayer(ANIMALS)).double()
    x = torch.randn(20, 5, dtype=torch.float64)
    with torch.no_grad():
        for what, query in QUERIES.items():
            y = net(x).sample()
            got = answer(export.module(net, what), what, x, y)
            torch.testing.assert_close(got, query(net(x), y))
    layer = sp.ConstraintLayer(ANIMALS)
    assert torch.equal(export.module(layer, "mode")(x[:, :3]), layer(x[:, :3]).mode)


def test_a_write_that_fails_keeps_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(program: object, file: Any, **_: object) -> None:
        file.write(b"half")
        raise OSError("no space left")

    path = tmp_path / "mode.pt2"
    path.write_bytes(b"old")
    monkeypatch.setattr(torch.export, "save", broken)
    with pytest.raises(OSError, match="no space left"):
        export.save_program(network(sp.SPL(6, ANIMALS)), path)
    assert path.read_bytes() == b"old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["mode.pt2"]


def test_a_program_needs_no_semprola(tmp_path: Path) -> None:
    net = network(sp.SPL(6, ANIMALS))
    rules = sp.parse(ANIMALS)
    export.save_program(net, tmp_path / "mode.pt2", "mode", constraint=rules)
    x, _ = inputs(net, 9)
    torch.save({"x": x, "expected": net(x).mode}, tmp_path / "data.pt")
    code = """
import json, sys, torch
sys.modules["semprola"] = None
extra = {"semprola.json": ""}
run = torch.export.load(sys.argv[1] + "/mode.pt2", extra_files=extra).module()
said = json.loads(extra["semprola.json"])
assert json.loads(said["labels"]) == ["cat", "animal", "dog"]
assert (said["circuit_digest"], said["constraint"], said["query"]) == (*sys.argv[2:], "mode")
data = torch.load(sys.argv[1] + "/data.pt", weights_only=True)
assert torch.equal(run(data["x"]), data["expected"])
assert torch.equal(run(data["x"][:1]), data["expected"][:1])
"""
    words = [str(tmp_path), net[3].circuit.digest, str(rules)]  # type: ignore[index, union-attr]
    subprocess.run([sys.executable, "-W", "ignore", "-c", code, *words], check=True, timeout=240)


@pytest.mark.extensive
def test_a_program_of_the_engines_operators_says_that_it_needs_semprola(tmp_path: Path) -> None:
    """What `torch.export` makes of a network itself; torch's message names the operator, and that it is missing."""

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = sp.SPL(4, ANIMALS)

        def forward(self, x: Tensor) -> Tensor:
            mode: Tensor = self.layer(x).mode
            return mode

    torch.export.save(torch.export.export(Net(), (torch.zeros(3, 4),)), tmp_path / "own.pt2")
    code = "import sys, torch; torch.export.load(sys.argv[1])"
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code, str(tmp_path / "own.pt2")], capture_output=True, text=True
    )
    assert done.returncode != 0
    assert "torch.ops.semprola." in done.stderr
    assert "not registered" in done.stderr


@pytest.mark.extensive
@pytest.mark.parametrize(
    ("kind", "what"),
    [("single", "mode"), ("product", "hamming"), ("mixture", "log_prob"), ("product mixture", "mean")],
)
def test_onnx_runtime_gives_the_same_answers(kind: str, what: str, tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnxscript")
    net = network(LAYERS[kind](sp.parse(ANIMALS)))
    path = export.onnx(net, tmp_path / "net.onnx", what, constraint=sp.parse(ANIMALS))
    content = onnx.load(path)
    assert {node.domain for node in content.graph.node} == {""}
    assert not content.functions
    kept = {entry.key: entry.value for entry in content.metadata_props}
    assert json.loads(kept["labels"]) == ["cat", "animal", "dog"]
    assert kept["circuit_digest"] == net[3].circuit.digest
    assert sp.parse(kept["constraint"]).labels == sp.parse(ANIMALS).labels
    session = runtime.InferenceSession(str(path))
    for count in (1, 2, 1000):
        x, y = inputs(net, count)
        feed = {"x": x.numpy(), "y": y.numpy()} if what == "log_prob" else {"x": x.numpy()}
        with torch.no_grad():
            expected = QUERIES[what](net(x), y).numpy()
        np.testing.assert_allclose(session.run([what], feed)[0], expected, rtol=1e-4, atol=1e-5)
    if what in ("mode", "hamming"):
        states = session.run(None, {"x": 100 * torch.randn(10_000, 5).numpy()})[0]
        assert bool(net[3].circuit.satisfied(states).all())


@pytest.mark.extensive
@pytest.mark.parametrize("replicas", [1, 3])
def test_onnx_of_a_layer_without_parameters(replicas: int, tmp_path: Path) -> None:
    runtime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnxscript")
    path = export.onnx(sp.SPL(4, "a & ~b", replicas=replicas).eval(), tmp_path / "one.onnx", "mean")
    for count in (1, 3):
        (got,) = runtime.InferenceSession(str(path)).run(None, {"x": torch.randn(count, 4).numpy()})
        np.testing.assert_array_equal(got, [[1, 0]] * count)


def test_an_estimator_as_onnx(tmp_path: Path) -> None:
    pytest.importorskip("sklearn")
    runtime = pytest.importorskip("onnxruntime")
    X = np.random.default_rng(0).normal(size=(60, 3)) * 5 + 2
    y = np.stack([X[:, 0] > 4, X[:, 0] > 2], axis=1).astype(int)
    model = sp.sklearn.SPLClassifier("hot -> warm", epochs=5, random_state=0).fit(X, y)
    path = export.onnx(model, tmp_path / "model.onnx", "mean")
    got = runtime.InferenceSession(str(path)).run(None, {"x": X.astype(np.float32)})[0]
    np.testing.assert_allclose(got, model.predict_proba(X), atol=1e-4)


@pytest.mark.parametrize(
    ("model", "what", "message"),
    [
        (sp.SPL(4, ANIMALS), "median", "what must be one of 'mode', 'mean', 'log_prob', 'hamming', not 'median'"),
        (sp.SPL(4, ANIMALS, units=2), "mode", "units > 1 cannot be exported"),
        (sp.SPL(4, ANIMALS, known_states=torch.zeros(1, 3)), "mode", "known_states cannot be exported"),
        (
            sp.ProductSPL(4, sp.compile(sp.parse(ANIMALS), backend="sdd"), q="vtree"),
            "mode",
            "q='vtree' cannot be exported",
        ),
        (sp.SPL(4, sp.compile(sp.parse("a -> b"), given=["a"], labels=["b"])), "mode", "given inputs"),
        (
            sp.SPL(4, sp.constraints.cardinality([f"x{i}" for i in range(16)], at_least=3), components=2),
            "mode",
            "a mixture over more than 4096 models",
        ),
        (sp.ConstraintLayer(sp.split(sp.constraints.permutation(4), max_nodes=30)), "mode", "over a split"),
        (nn.Linear(3, 3), "mode", "one constrained layer, but this one has 0"),
        (3, "mode", "a torch module or a fitted SPLClassifier, not int"),
    ],
)
def test_what_cannot_be_exported(model: Any, what: str, message: str) -> None:
    with pytest.raises(sp.SemprolaError, match=message):
        export.module(model, what)


def test_inputs_of_unknown_shape() -> None:
    net = nn.Sequential(nn.Flatten(), nn.Linear(6, 4), sp.SPL(4, ANIMALS))
    with pytest.raises(sp.SemprolaError, match="input shape of Flatten is unknown: pass example="):
        export.program(net)
    with pytest.raises(sp.SemprolaError, match="a batch of two or more rows"):
        export.program(net, example=torch.zeros(1, 2, 3))
    run = export.program(net, example=torch.zeros(2, 2, 3)).module()
    x = torch.randn(5, 2, 3)
    assert torch.equal(run(x), net(x).mode)
