"""SequenceSPL in model folders, torch.export programs and ONNX files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from sequence_oracle import RULES, TAGS, make
from torch import Tensor, nn

import semprola as sp
from semprola import export

QUERIES: dict[str, Any] = {
    "mode": lambda p, y: p.mode,
    "mean": lambda p, y: p.mean,
    "log_prob": lambda p, y: p.log_prob(y),
    "hamming": lambda p, y: p.decode("hamming"),
}


class Tagger(nn.Module):
    """A recurrent network with the layer."""

    def __init__(self, layer: sp.SequenceSPL) -> None:
        super().__init__()
        self.body = nn.LSTM(4, 6, batch_first=True, bidirectional=True)
        self.head, self.layer = nn.Linear(12, 3), layer

    def forward(self, x: Tensor) -> sp.sequences.SequenceDistribution:
        result: sp.sequences.SequenceDistribution = self.layer(3 * self.head(self.body(x)[0]))
        return result


class TestFolders:
    @pytest.mark.parametrize("rules", RULES)
    @pytest.mark.parametrize("transitions", [True, False])
    def test_round_trip(self, rules: str, transitions: bool, tmp_path: Path) -> None:
        pytest.importorskip("safetensors")
        net = nn.Sequential(nn.Linear(4, 3), make(rules, transitions)).double().eval()
        sp.save(net, tmp_path)
        again = sp.load(tmp_path)
        x = torch.randn(2, 5, 4, dtype=torch.float64)
        torch.testing.assert_close(again(x).log_partition, net(x).log_partition)
        assert torch.equal(again(x).mode, net(x).mode)
        assert again[1].tags == TAGS
        assert again[1].machine.digest == net[1].machine.digest

    def test_networks_that_only_their_program_can_build(self, tmp_path: Path) -> None:
        pytest.importorskip("safetensors")
        net = Tagger(make("bio", dtype=torch.float32)).eval()
        sp.save(net, tmp_path)
        again = sp.load(tmp_path, Tagger(sp.SequenceSPL(TAGS, RULES["bio"])))
        x = torch.randn(2, 5, 4)
        torch.testing.assert_close(again(x).mean, net(x).mean)
        with pytest.raises(sp.FormatError, match="other tags or rules"):
            sp.load(tmp_path, Tagger(sp.SequenceSPL(TAGS)))

    def test_damage(self, tmp_path: Path) -> None:
        pytest.importorskip("safetensors")
        sp.save(make("bio"), tmp_path)
        index = json.loads((tmp_path / "model.json").read_text())
        for damage in ({"table": [[0, 9, 0]], "accepting": [True]}, {"table": [[0]]}, 3):
            index["network"]["rules"] = damage
            (tmp_path / "model.json").write_text(json.dumps(index))
            with pytest.raises(sp.SemprolaError):
                sp.load(tmp_path)


class TestExport:
    @pytest.mark.parametrize(("what", "rules"), [("mode", "bio"), ("log_prob", "a third"), ("mean", "a third")])
    def test_programs(self, what: str, rules: str) -> None:
        layer = make(rules, dtype=torch.float32)
        net = Tagger(layer).eval() if what == "mode" else nn.Sequential(nn.Linear(4, 3), layer)
        example, x = torch.randn(3, 5, 4), torch.randn(7, 5, 4)
        y = net(x).sample()
        y[::2] = torch.randint(3, (4, 5))
        given = (x, y) if what == "log_prob" else (x,)
        expected = QUERIES[what](net(x), y)
        torch.testing.assert_close(export.module(net, what)(*given), expected)
        found = export.program(net, what, example=example).module()(*given)
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)

    @pytest.mark.parametrize("what", ["mode", pytest.param("log_prob", marks=pytest.mark.extensive), "mean"])
    def test_programs_for_any_length(self, what: str) -> None:
        net = nn.Sequential(nn.Linear(4, 3), make("bio", dtype=torch.float32))
        run = export.program(net, what, example=torch.randn(3, 6, 4), any_length=True).module()
        for positions in (1, 2, 5, 6):
            x = torch.randn(4, positions, 4)
            y = net(x).sample()
            given = (x, y) if what == "log_prob" else (x,)
            torch.testing.assert_close(run(*given), QUERIES[what](net(x), y), rtol=1e-4, atol=1e-5)

    def test_lengths_that_the_rules_exclude(self) -> None:
        net = nn.Sequential(nn.Linear(4, 2), sp.SequenceSPL(["a", "b"], "a a (a | b)*"))
        with pytest.raises(sp.SemprolaError, match="no sequence of 1 tags obeys"):
            export.program(net, example=torch.randn(3, 6, 4), any_length=True)
        moved = nn.Sequential(nn.Flatten(1), nn.Linear(6, 8), nn.Unflatten(1, (4, 2)), sp.SequenceSPL(["a", "b"]))
        with pytest.raises(sp.SemprolaError, match="second dimension"):
            export.program(moved, example=torch.randn(3, 6), any_length=True)
        with pytest.raises(sp.SemprolaError, match="SequenceSPL"):
            export.program(sp.SPL(4, "a -> b"), any_length=True)

    @pytest.mark.extensive
    def test_onnx_for_any_length(self, tmp_path: Path) -> None:
        runtime = pytest.importorskip("onnxruntime")
        pytest.importorskip("onnxscript")
        net = nn.Sequential(nn.Linear(4, 3), make("bio", dtype=torch.float32))
        path = export.onnx(net, tmp_path / "tagger.onnx", example=torch.randn(3, 6, 4), any_length=True)
        session = runtime.InferenceSession(path)
        for positions in (1, 3, 6):
            x = torch.randn(50, positions, 4)
            assert torch.equal(torch.from_numpy(session.run(None, {"x": x.numpy()})[0]), net(x).mode)

    @pytest.mark.extensive
    @pytest.mark.parametrize("what", QUERIES)
    def test_onnx(self, what: str, tmp_path: Path) -> None:
        onnx, runtime = pytest.importorskip("onnx"), pytest.importorskip("onnxruntime")
        pytest.importorskip("onnxscript")
        net = nn.Sequential(nn.Linear(4, 3), make("bio", dtype=torch.float32))
        path = export.onnx(net, tmp_path / "tagger.onnx", what, example=torch.randn(3, 5, 4), constraint=RULES["bio"])
        session = runtime.InferenceSession(path)
        x = torch.randn(1000, 5, 4)
        y = net(x).sample()
        y[::2] = torch.randint(3, (500, 5))
        given = {"x": x.numpy()} | ({"y": y.numpy()} if what == "log_prob" else {})
        found = torch.from_numpy(session.run(None, given)[0])
        expected = QUERIES[what](net(x), y)
        same = (found == expected).all(-1) if what in ("mode", "hamming") else torch.ones(1000)
        assert same.float().mean() >= 0.999  # two sequences may be equally good but for rounding
        if what in ("mean", "log_prob"):
            torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-4)
        metadata = {entry.key: entry.value for entry in onnx.load(path).metadata_props}
        assert json.loads(metadata["labels"]) == list(TAGS)
        assert metadata["rules_digest"] == net[1].machine.digest
        assert "prev=B" in metadata["constraint"]
        if what in ("mode", "hamming"):
            many = torch.from_numpy(session.run(None, {"x": (5 * torch.randn(10_000, 5, 4)).numpy()})[0])
            assert net(torch.zeros(5, 4)).support.check(many).all()

    def test_refusals(self) -> None:
        net = Tagger(sp.SequenceSPL(3))
        with pytest.raises(sp.SemprolaError, match="'log_prob', 'hamming', not 'entropy'"):
            export.program(net, "entropy", example=torch.zeros(2, 5, 4))
        with pytest.raises(sp.SemprolaError, match="pass example="):
            export.program(net)
