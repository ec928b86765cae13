"""Figures in the sentences of README.md and docs/ are those of the results files."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import pytest

import semprola as sp
from experiments import evidence
from experiments.hmlc.collecting import EXACT, Campaign
from experiments.provenance import read_json
from experiments.published import PUBLISHED
from semprola.comparison.report import read_report

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "results"


def says(page: str, sentence: str) -> None:
    """The page has this text, wherever its lines break."""
    text = " ".join((ROOT / page).read_text(encoding="utf-8").split())
    assert sentence in text, f"{page} should say: {sentence}"


def test_simple_paths() -> None:
    start = evidence.figures(RESULTS, evidence.PATHS["the paper's network"])
    paper = PUBLISHED["simple-path"]
    says(
        "docs/paths.md",
        f"{start['spl'][0]:.1f} % with the paper's network and start, where the paper has {paper['spl'][0]:.1f} %",
    )
    known = evidence.figures(RESULTS, ("simple-path-given-published-wide-small-search",))
    exact, independent = known["product-spl"][0], known["fil"][0]
    says("docs/paths.md", f"get {exact:.1f} % of the test rows right, and independent labels {independent:.1f} %")
    unseen = evidence.figures(RESULTS, ("simple-path-given-graph-wide-small-search",))
    assert all(unseen[method][0] < known[method][0] for method in known)
    assert min(unseen[layer][0] for layer in ("spl", "product-spl")) > max(
        unseen[method][0] for method in unseen if "spl" not in method
    )
    released = evidence.figures(RESULTS, ("simple-path-paper-published-scaled-released-search",))
    says("docs/paths.md", f"give {released['spl'][0]:.1f} % for one circuit with the scaled start")
    best = evidence.figures(RESULTS, evidence.PATHS["wider, rows also mirrored"])
    two, alone = best["product-spl"][0], best["fil"][0]
    says("docs/evidence.md", f"two circuits reach {two:.0f} % and independent labels {alone:.0f} %")


def test_preferences() -> None:
    seen = evidence.figures(RESULTS, evidence.PREFERENCES["the paper's network"])
    paper = PUBLISHED["preference"]["spl"][0]
    one, two = seen["spl"][0], seen["product-spl"][0]
    says(
        "docs/preferences.md", f"{one:.1f} and {two:.1f} % of the orders are right, against {paper:.1f} % in the paper"
    )
    for loss in ("semantic-loss", "nesy-entropy"):
        assert 0 < min(one, two) - seen[loss][0] < 2
    error = 100 * math.sqrt(0.21 * 0.79 / 986)
    says("docs/preferences.md", f"A share of 21 % of 986 test rows has a standard error of {error:.1f} points")


def test_warcraft() -> None:
    def mean(name: str, *keys: str) -> float:
        runs = [read_json(path) for path in sorted((RESULTS / "warcraft").glob(f"{name}-seed?.json"))]
        return sum(run[keys[0]][keys[1]] for run in runs) / len(runs)

    page = "docs/warcraft.md"
    grid = {name: mean(f"grid-{name}", "test", "exact") for name in ("fil", "semantic-loss", "nesy-entropy")}
    two = mean("grid-product-spl", "test", "exact")
    says(
        page, f"finds the labelled path on {two:.1f} % of the maps, the best of the others on {max(grid.values()):.1f}"
    )
    says("docs/evidence.md", f"two circuits find {two:.1f} %, independent edges {grid['fil']:.1f} % (five seeds)")
    several = [mean(f"grid-product-spl{components}", "test", "exact") for components in (2, 4, 8)]
    says(page, "with 2, 4 and 8 of them, the two-circuit layer finds {:.1f}, {:.1f} and {:.1f} %".format(*several))
    says(page, f"as q (two seeds) finds {mean('grid-hmm', 'test', 'exact'):.1f} %")
    assert all(abs(exact - two) < 1 for exact in several)  # "as with one"
    names = ("product-spl4", "fil", "semantic-loss")
    layer, independent, loss = (mean(f"resnet18-{name}", "test", "exact") for name in names)
    says(page, f"it finds {layer:.1f} %, independent edges {independent:.1f} and the semantic loss {loss:.1f}.")
    says("docs/evidence.md", f"one circuit finds {mean('grid-spl', 'test', 'exact'):.1f} %")
    says(page, f"the layer's paths cost {mean('resnet18-product-spl4', 'test', 'cost_ratio'):.3f} times the least cost")
    says(page, f"The grid net's paths cost {mean('grid-product-spl', 'test', 'cost_ratio'):.3f} times the least cost")
    solver, own = (mean(f"costs-{name}-8", "test", "optimal") for name in ("perturbed", "product-spl"))
    says(page, f"a little more often than the layer ({solver:.1f} and {own:.1f} %)")
    seconds = [mean(f"costs-{name}-8", "history", "processor_seconds") for name in ("perturbed", "product-spl")]
    assert 0.4 < seconds[0] / seconds[1] < 0.6  # "in half the time"


def test_which_layer() -> None:
    rows = [line.split("|")[1:-1] for line in evidence.layers_table(RESULTS).splitlines()[2:]]
    gaps = [float(row[3]) - float(row[2]) for row in rows]
    ahead, behind = sum(gap >= 1 for gap in gaps), sum(gap <= -1 for gap in gaps)
    assert (len(gaps), ahead, len(gaps) - ahead - behind, behind) == (10, 7, 2, 1)
    says(
        "docs/which_layer.md",
        "of the ten comparisons below, it is ahead of `SPL` in seven, level (within a point) in two and behind in one",
    )
    (hierarchies,) = (gap for row, gap in zip(rows, gaps, strict=True) if "hierarchies" in row[0])
    says("docs/which_layer.md", f"ahead of `ProductSPL` by {-hierarchies:.1f} points of exact match on average")
    runs = read_json(RESULTS / "start.json")["runs"]
    ends: dict[int, list[float]] = {1: [], 4: []}
    for run in runs:
        if run["start"] == "models":
            ends[run["replicas"]].append(run["curve"][-1]["exact"])
    gap = sum(ends[1]) / len(ends[1]) - sum(ends[4]) / len(ends[4])
    says("docs/which_layer.md", f"4 are {gap:.1f} points behind 1 after the same 600 steps")


def decoders(figure: str) -> dict[tuple[str, str], float]:
    """Means over seeds of one figure, by method and decoder."""
    found: dict[tuple[str, str], list[float]] = {}
    for run in read_json(RESULTS / "decoders.json")["runs"]:
        found.setdefault((run["method"], run["decoder"]), []).append(run[figure])
    return {key: sum(values) / len(values) for key, values in found.items()}


def test_decoders() -> None:
    f1, exact, times = decoders("f1"), decoders("exact"), decoders("decode_ms")
    layers = ("product", "mixture", "single")
    assert all(f1[layer, "mode"] < f1["independent", "mode"] < f1[layer, "f1"] for layer in layers)
    assert f1["product", "f1"] > f1["independent", "f1"] > max(f1["mixture", "f1"], f1["single", "f1"])
    assert all(exact[layer, "mode"] > 5 * exact["independent", "mode"] for layer in layers)
    assert all(
        exact[layer, "mode"] == max(exact[layer, d] for d in ("mode", "hamming", "f1", "jaccard")) for layer in layers
    )
    likelihood = decoders("log_likelihood")
    assert likelihood["mixture", "mode"] < likelihood["product", "mode"]
    assert max(value for (_, decoder), value in times.items() if decoder == "hamming") < 0.3
    for decoder, sentence in (
        ("f1", '`decode("f1")` takes {} to {} ms per row'),
        ("jaccard", '`decode("jaccard")` takes {} to {} ms'),
    ):
        seen = [value for (_, name), value in times.items() if name == decoder]
        says("docs/howto_decoding.md", sentence.format(round(min(seen)), round(max(seen))))


def test_sequences() -> None:
    content = read_json(RESULTS / "sequences.json")
    assert content["difference"] < 1e-4
    rights: dict[str, list[float]] = {}
    for run in content["accuracy"]:
        rights.setdefault(run["candidate"], []).append(100 * run["right"])
    assert 3.5 < max(max(seen) - min(seen) for seen in rights.values()) < 4.5
    apart = [abs(a - b) for a, b in zip(rights["pytorch-crf"], rights["none"], strict=True)]
    assert 3.5 < max(apart) < 4.5


def test_comparisons() -> None:
    smokers = read_report(RESULTS / "compare_smokers.json")
    rules = sp.parse(smokers.about["rules"])
    one, two = sp.SPL(1, rules).num_gate_outputs, sp.ProductSPL(1, rules).num_gate_outputs
    says("docs/comparing.md", f"its gate has {one} outputs where the other has {two}")
    terms = len(sp.baselines.MultiplexNet(1, rules).terms)
    says("docs/comparing.md", f"MultiplexNet writes the rules out as {terms} terms")
    exact = {row["method"]: smokers.mean(row["method"], "exact") for row in smokers.rows if "folds" in row}
    assert sorted(exact, key=exact.__getitem__)[-2:] == ["ccn", "product-spl"]
    assert exact["spl"] < exact["fil"]
    digits = read_report(RESULTS / "compare_digits.json")
    assert sp.compile(digits.about["rules"]).model_count() == 10
    exact = {row["method"]: digits.mean(row["method"], "exact") for row in digits.rows if "folds" in row}
    assert sorted(exact, key=exact.__getitem__)[-3:] == ["spl", "product-spl", "multiplexnet"]
    assert exact["dl2"] < exact["fil"]
    for figure in ("hamming", "auprc"):
        assert digits.mean("spl", figure) < digits.mean("fil", figure)


def test_table_one() -> None:
    results = read_json(RESULTS / "table_one.json")["results"]
    marks = {system: sum(found["mark"] for found in seen.values()) for system, seen in results.items()}
    assert marks.pop("spl") == marks.pop("product-spl") == 6
    assert max(marks.values()) == 4  # "no other system has more than four"
    assert "Of the 48 published marks, 46 are confirmed" in evidence.marks_sentence(RESULTS)
    says("docs/table_one.md", "Of the 48 published marks, 46 are confirmed")
    assert results["multiplexnet"]["D4"]["taken"] == 7


def test_competition() -> None:
    entries = {entry["name"]: entry for entry in read_json(RESULTS / "compile_competition.json")["entries"]}
    hard = entries["mc2022_track1_002"]
    assert hard["seconds"] is None  # no circuit over all variables within a minute
    says("docs/compile.md", f"`track1_002` of the competition below is counted in {hard['count']:.2f} s")


def outputs() -> dict[str, list[str]]:
    found: dict[str, list[str]] = read_json(RESULTS / "examples.json")["outputs"]
    return found


@pytest.mark.parametrize("name", sorted(outputs()))
def test_examples(name: str) -> None:
    """Every percentage in the row of an example is one that it prints, or what is missing from one to 100."""
    page = (ROOT / "docs" / "examples.md").read_text(encoding="utf-8")
    row = next(line for line in page.splitlines() if line.startswith(f"| [{name}.py]"))
    printed = {float(number) for line in outputs()[name] for number in re.findall(r"(\d+\.\d+)%", line)}
    allowed: set[Any] = printed | {round(100 - number, 1) for number in printed}
    for number in re.findall(r"(\d+(?:\.\d+)?) %", row):
        assert float(number) in allowed, f"docs/examples.md: {name} does not print {number} %"


def test_the_record() -> None:
    """Every triple of figures in the sentences of the record is published, or in a results file."""
    page = (ROOT / "docs" / "record_paths.md").read_text(encoding="utf-8")
    known = {tuple(figures) for methods in PUBLISHED.values() for figures in methods.values()}
    for experiment in PUBLISHED:
        for path in RESULTS.glob(f"{experiment}-*.json"):
            means = evidence.figures(RESULTS, (path.stem,)).values()
            searched = [entry["valid"] for entry in read_json(path).get("search", ())]
            seen = [*means, *([valid[name] for name in ("exact", "hamming", "consistent")] for valid in searched)]
            known |= {tuple(round(figure, 1) for figure in figures) for figures in seen}
    prose = page[: page.index("## Where a layer starts")]
    triples = re.findall(r"(\d+\.\d) / (\d+\.\d) / (\d+\.\d)", prose)
    assert len(triples) > 10
    missing = [triple for triple in triples if tuple(map(float, triple)) not in known]
    assert not missing


def test_hierarchies_without_the_further_rules() -> None:
    campaign = Campaign(RESULTS / "hmlc")
    means: dict[str, list[float]] = {}
    for name in ("cellcycle", "derisi", "eisen", "gasch2"):
        sources = (campaign.variants[name, "spl", "optionsFalse"], campaign.of(name, "spl"), campaign.of(name, "hmcnn"))
        means[name] = [sum(values) / len(values) for values in (EXACT.of(runs, "retrained") for runs in sources)]
    free = {name: f"{values[0]:.1f}" for name, values in means.items()}
    lower = sorted(ruled - plain for plain, ruled, _ in means.values())
    above = sorted(plain - hmcnn for plain, _, hmcnn in means.values())
    says(
        "docs/hmlc.md",
        f"SPL's exact match is {free['cellcycle']} on cellcycle, {free['derisi']} on derisi, {free['eisen']} on eisen "
        f"and {free['gasch2']} on gasch2: {lower[0]:.1f} to {lower[-1]:.1f} points lower than with the rule, and "
        f"{above[0]:.1f} to {above[-1]:.1f} points above our HMCNN",
    )
