"""Models on the hub: what is uploaded, what is fetched, and the model card."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from local_hub import LocalHub, local_hub

import semprola as sp

pytest.importorskip("huggingface_hub")
pytest.importorskip("safetensors")
RULES = "cat -> animal\ndog -> animal"


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[LocalHub]:
    with local_hub(monkeypatch, tmp_path / "cache") as server:
        yield server


class Net(torch.nn.Module, sp.saving.Pretrained):
    """A network of one's own."""

    def __init__(self, circuit: sp.Circuit, width: int = 3) -> None:
        super().__init__()
        self.body = torch.nn.Linear(4, width)
        self.layer = sp.SPL(width, circuit)

    def forward(self, x: torch.Tensor) -> Any:
        return self.layer(self.body(x))


def test_there_and_back(hub: LocalHub) -> None:
    x = torch.randn(5, 4)
    net = torch.nn.Sequential(torch.nn.Linear(4, 6), torch.nn.ReLU(), sp.ProductSPL(6, sp.parse(RULES)))
    url = sp.saving.push_to_hub(net, "me/pets", token="hf_x", license="mit")
    assert url.startswith(f"{hub.url}/me/pets/commit/")
    files = hub.files("me/pets")
    assert set(files) == {"README.md", "model.json", "weights.safetensors", "circuit-0.sp"}
    card = files["README.md"].decode()
    assert card.startswith("---\nlibrary_name: semprola\nlicense: mit\n")
    assert "cat -> animal\ndog -> animal\n" in card
    assert 'sp.saving.from_pretrained("me/pets")' in card
    again = sp.saving.from_pretrained("me/pets", token=False)
    torch.testing.assert_close(again(x).mean, net(x).mean)
    hub.asked.clear()
    assert sp.saving.from_pretrained("me/pets", local_files_only=True).training is False
    assert hub.asked == []


def test_nothing_but_models_is_fetched_and_old_circuits_go(hub: LocalHub) -> None:
    two = torch.nn.Sequential(sp.SPL(4, RULES), torch.nn.Identity())
    sp.saving.push_to_hub(two, "me/pets", token="hf_x")
    files = hub.files("me/pets")
    hub.commit("me/pets", "main", {**files, "evil.pkl": b"x", "setup.py": b"x", "circuit-1.sp": b"old"})
    hub.asked.clear()
    sp.saving.push_to_hub(sp.SPL(4, "a -> b"), "me/pets", token="hf_x", card="# Mine", branch="try")
    assert hub.files("me/pets", "try")["README.md"] == b"# Mine"
    assert "circuit-1.sp" not in hub.files("me/pets", "try")
    assert "circuit-1.sp" in hub.files("me/pets")
    hub.asked.clear()
    model = sp.saving.from_pretrained("me/pets", revision="try")
    assert model.circuit.labels == ("a", "b")
    assert [asked for asked in hub.asked if "evil" in asked or "setup" in asked] == []


def test_networks_of_ones_own(hub: LocalHub) -> None:
    net = Net(sp.compile(RULES), width=2)
    net.push_to_hub("me/own", token="hf_x")
    assert 'Net.from_pretrained("me/own")' in hub.files("me/own")["README.md"].decode()
    again = Net.from_pretrained("me/own", token=False)
    assert again.body.out_features == 2
    torch.testing.assert_close(again(torch.ones(1, 4)).mean, net(torch.ones(1, 4)).mean)


def test_a_trained_folder(hub: LocalHub, tmp_path: Path) -> None:
    """As `semprola train` writes it: the card has the inputs and the scores."""
    model = sp.SPL(3, RULES)
    table = {"features": [["size", None], ["colour", ["red", "a`b"]]], "rules": ["cat -> animal", "'```' -> animal"]}
    sp.save(model, tmp_path / "m", metadata={"table": table, "figures": {"exact match": 92.5, "other": None}})
    sp.saving.push_to_hub(tmp_path / "m", "me/table", token="hf_x")
    card = hub.files("me/table")["README.md"].decode()
    assert "pipeline_tag: tabular-classification" in card
    assert "- `colour`: one of `red`, ``a`b``" in card
    assert "````text\ncat -> animal\n'```' -> animal\n````" in card
    assert "| exact match | 92.5 |\n| other | not known |" in card
    assert "5 allowed states" in card
    assert hub.files("me/table")["weights.safetensors"] == (tmp_path / "m" / "weights.safetensors").read_bytes()


@pytest.mark.parametrize("name", ["me/nothing", "./me", "nowhere"])
def test_what_is_not_there_is_told_in_one_line(hub: LocalHub, name: str) -> None:
    with pytest.raises(sp.SemprolaError, match=r"me/nothing: .*404|no model here") as caught:
        sp.saving.from_pretrained(name)
    assert len(str(caught.value).splitlines()) == 1
    with pytest.raises(sp.SemprolaError, match="a b/c"):
        sp.saving.push_to_hub(sp.SPL(3, RULES), "a b/c", token="hf_x")
