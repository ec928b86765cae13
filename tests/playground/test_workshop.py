"""What the page is told, against brute force over all label vectors."""

from __future__ import annotations

import itertools
import math
import random

import numpy as np
import pytest
import torch

import semprola as sp
from semprola.errors import CompilationBudgetError, FormatError, LabelError, ParseError
from semprola.playground.examples import examples
from semprola.playground.limits import Limits
from semprola.playground.pictures import Flow, picture
from semprola.playground.problems import SIZES, Problem, RequestError, read_problem
from semprola.playground.workshop import Workshop

RULES = {
    "hierarchy": "cat -> animal\ndog -> animal\n~(cat & dog)\nkitten -> cat",
    "counting": "exactly(2, a, b, c, d)\na -> b | e",
    "free labels": "(a | ~a) & (b ^ c)",
    "parts": "one_hot(a, b)\none_hot(c, d)\ne <-> f",
    "literals": "a\n~b\nc | d",
}


def problem(text: str = "", structure: str = "none", size: int = 0) -> dict[str, object]:
    return {"problem": {"structure": structure, "size": size, "text": text}}


class Brute:
    """All label vectors that satisfy rules and evidence, with their weights."""

    def __init__(self, text: str, labels: list[str], beliefs: list[float], evidence: str) -> None:
        formulas = [sp.parse(line) for line in text.split("\n")]
        self.weights = {}
        for state in itertools.product((0, 1), repeat=len(labels)):
            values = dict(zip(labels, state, strict=True))
            if any(e not in ("-", str(v)) for e, v in zip(evidence, state, strict=True)):
                continue
            if all(formula.evaluate(values) for formula in formulas):
                self.weights[state] = math.prod(p if v else 1 - p for p, v in zip(beliefs, state, strict=True))
        self.total = sum(self.weights.values())

    def marginal(self, label: int) -> float:
        return sum(weight for state, weight in self.weights.items() if state[label]) / self.total


@pytest.mark.parametrize("name", RULES)
def test_answers_agree_with_brute_force(name: str) -> None:
    workshop, source, rng = Workshop(Limits()), problem(RULES[name]), random.Random(name)
    labels = workshop.describe({"source": source})["labels"]
    for _ in range(6):
        beliefs = [round(rng.uniform(0.01, 0.99), 2) for _ in labels]
        evidence = "".join(rng.choice("----01") for _ in labels)
        brute = Brute(RULES[name], labels, beliefs, evidence)
        answer = workshop.answer({"source": source, "beliefs": beliefs, "evidence": evidence})
        if not brute.weights:
            culprits = answer["impossible"]
            kept = "".join(e if i in culprits else "-" for i, e in enumerate(evidence))
            assert not Brute(RULES[name], labels, beliefs, kept).weights
            for culprit in culprits:
                fewer = kept[:culprit] + "-" + kept[culprit + 1 :]
                assert Brute(RULES[name], labels, beliefs, fewer).weights, "an idle culprit"
            continue
        probabilities = sorted((weight / brute.total for weight in brute.weights.values()), reverse=True)
        assert answer["marginals"] == pytest.approx([brute.marginal(i) for i in range(len(labels))], abs=2e-6)
        assert answer["mode"]["probability"] == pytest.approx(probabilities[0])
        assert [found["probability"] for found in answer["top"]] == pytest.approx(probabilities[:5])
        entropy = -sum(p * math.log2(p) for p in probabilities)
        assert answer["entropy"]["low"] == pytest.approx(entropy, abs=1e-6)
        loss = {s: sum(abs(v - brute.marginal(i)) for i, v in enumerate(s)) for s in brute.weights}
        assert loss[tuple(answer["hamming"]["state"])] == pytest.approx(min(loss.values()))
        known = math.prod((p if e == "1" else 1 - p) for p, e in zip(beliefs, evidence, strict=True) if e != "-")
        assert answer["chance"] == pytest.approx(brute.total / known)


def test_broken_rules_are_the_false_ones() -> None:
    workshop, text = Workshop(Limits()), RULES["hierarchy"]
    labels = workshop.describe({"source": problem(text)})["labels"]
    for state in itertools.product((0, 1), repeat=len(labels)):
        beliefs = [0.9 if value else 0.1 for value in state]
        found = workshop.answer({"source": problem(text), "beliefs": beliefs, "evidence": "-" * len(labels)})
        values = dict(zip(labels, state, strict=True))
        expected = [rule for rule in text.split("\n") if not sp.parse(rule).evaluate(values)]
        assert found["independent"]["state"] == list(state)
        assert [broken["rule"] for broken in found["independent"]["broken"]] == expected


@pytest.mark.parametrize("name", RULES)
def test_flows_are_the_probabilities_of_edges(name: str) -> None:
    """The flow into the literals of a label is its marginal, where the circuit mentions it; sums split their flow."""
    circuit = sp.compile(sp.And([sp.parse(line) for line in RULES[name].split("\n")]))
    beliefs = np.linspace(0.15, 0.85, circuit.num_labels)
    found = Flow(circuit).through_edges(np.stack([1 - beliefs, beliefs], axis=1))
    assert found is not None
    p = sp.constrain(torch.from_numpy(beliefs).logit(), circuit)
    into = np.zeros(circuit.num_nodes)
    into[circuit.root] = 1.0
    np.add.at(into, circuit.children, found)
    for node in range(circuit.num_nodes - 1):
        literal = int(circuit.literal[node])
        out = sum(found[circuit.child_start[node] : circuit.child_start[node + 1]])
        if circuit.kind[node] == 2:
            assert out == pytest.approx(into[node], abs=1e-5)
        if literal > 0 and circuit.zero_suppressed[literal - 1]:
            assert into[node] == pytest.approx(float(p.mean[literal - 1]), abs=1e-5)


def test_pictures() -> None:
    small = picture(sp.compile("(cat -> animal) & (dog -> animal)"))
    assert small["kind"] == "graph"
    assert {node[3] for node in small["nodes"]} <= {"sum", "product", "literal", "negative", "true"}
    for points, parent, child in small["edges"]:
        assert points[0] == small["nodes"][parent][:2]
        assert points[-1] == small["nodes"][child][:2]
        assert points[0][1] < points[-1][1], "parents are above their children"
    large = sp.compile(sp.constraints.permutation(6))
    layers = picture(large)
    assert layers["kind"] == "layers"
    assert sum(sum(row[2:]) for row in layers["rows"]) == large.num_nodes


@pytest.mark.parametrize("example", examples(), ids=lambda example: example["name"])
def test_examples_show_something(example: dict[str, object]) -> None:
    """Each compiles, the independent prediction breaks a rule, and no name is misspelt."""
    workshop, source = Workshop(Limits()), {"problem": example["problem"]}
    labels = workshop.describe({"source": source})["labels"]
    beliefs, evidence = example["beliefs"], example["evidence"]
    assert isinstance(beliefs, dict)
    assert isinstance(evidence, dict)
    assert set(beliefs) | set(evidence) <= set(labels)
    other = example.get("other", 0.5)
    answer = workshop.answer(
        {
            "source": source,
            "beliefs": [beliefs.get(label, other) for label in labels],
            "evidence": "".join(str(evidence.get(label, "-")) for label in labels),
        }
    )
    assert answer["independent"]["broken"]
    assert len(answer["top"]) == 5
    assert answer["top"][0]["probability"] < 0.99


@pytest.mark.parametrize(
    ("structure", "size", "models", "kind"),
    [("grid", 3, 12, "grid"), ("grid", 4, 184, "grid"), ("ranking", 4, 24, "table"), ("sudoku", 4, 288, "board")],
)
def test_structures(structure: str, size: int, models: int, kind: str) -> None:
    described = Workshop(Limits()).describe({"source": problem("", structure, size)})
    assert int(described["models"]) == models
    assert described["view"]["kind"] == kind


def test_structures_combine_with_rules() -> None:
    free = Workshop(Limits()).describe({"source": problem("", "ranking", 3)})
    ruled = Workshop(Limits()).describe({"source": problem("cake.1 | cake.2\n~soup.3", "ranking", 3)})
    assert (free["models"], ruled["models"]) == ("6", "2")
    assert ruled["rules"][1:] == ["cake.1 | cake.2", "~soup.3"]


def test_tables_are_found_by_name() -> None:
    view = read_problem(Problem("none", 0, "one_hot(ana.mon, ben.mon)\nana.tue | ben.tue"), Limits()).view
    assert (view["kind"], view["rows"], view["columns"]) == ("table", ["ana", "ben"], ["mon", "tue"])
    assert read_problem(Problem("none", 0, "a.b | c"), Limits()).view == {"kind": "list"}


def test_no_labels_is_an_error() -> None:
    with pytest.raises(LabelError, match="mention no label"):
        read_problem(Problem("none", 0, "true"), Limits())


@pytest.mark.parametrize("content", [None, [], {}, {"structure": "torus", "size": 1, "text": ""}, {"structure": []}])
def test_problems_are_checked(content: object) -> None:
    with pytest.raises(RequestError):
        Problem.read(content, Limits())


def test_sizes_are_bounded() -> None:
    for structure, (low, high) in SIZES.items():
        for size in (low - 1, high + 1, True, 1.5, None):
            with pytest.raises(RequestError):
                Problem.read({"structure": structure, "size": size, "text": ""}, Limits())


def test_nodes_are_bounded() -> None:
    with pytest.raises(CompilationBudgetError) as caught:
        Workshop(Limits(nodes=100)).describe({"source": problem("", "grid", 6)})
    assert caught.value.resource == "nodes"


POOLED = "\n".join(
    [f"exactly(1, {', '.join(f'r{r}.c{c}' for c in range(4))})" for r in range(4)]
    + [f"exactly(1, {', '.join(f'r{r}.c{c}' for r in range(4))})" for c in range(4)]
    + ["r0.c0 | r1.c1", "r2.c3 -> ~r0.c0"]
)
SMALL = Limits(nodes=40)
"""With so few nodes, the rules above do not compile as one circuit."""


def test_rules_that_do_not_compile_are_split() -> None:
    workshop, source = Workshop(SMALL), problem(POOLED)
    described = workshop.describe({"source": source})
    labels = described["labels"]
    assert described["pooled"].startswith("answers are pooled from ")
    assert described["picture"]["kind"] == "circuits"
    assert sum(row[1] for row in described["picture"]["rows"]) == described["nodes"]
    assert described["uniform"]
    rng = random.Random(1)
    for evidence in ("-" * 16, "1" + "-" * 15, "-" * 9 + "01" + "-" * 5, "11" + "-" * 14, "1" + "-" * 10 + "1----"):
        beliefs = [round(rng.uniform(0.05, 0.95), 2) for _ in labels]
        brute = Brute(POOLED, labels, beliefs, evidence)
        answer = workshop.answer({"source": source, "beliefs": beliefs, "evidence": evidence})
        if not brute.weights:
            assert set(answer["impossible"]) <= {i for i, known in enumerate(evidence) if known != "-"}
            continue
        ranked = sorted(brute.weights, key=lambda state: -brute.weights[state])
        assert answer["mode"]["exact"]
        assert tuple(answer["mode"]["state"]) == ranked[0]
        assert [tuple(found["state"]) for found in answer["top"]] == ranked[:5]
        for found in answer["top"]:
            exact = brute.weights[tuple(found["state"])] / brute.total
            assert found["low"] <= exact + 1e-6
            assert exact <= found["high"] + 1e-6
        if answer["marginals"] is not None:
            assert answer["marginals"] == pytest.approx([brute.marginal(i) for i in range(16)], abs=0.08)
        known = math.prod((p if e == "1" else 1 - p) for p, e in zip(beliefs, evidence, strict=True) if e != "-")
        assert answer["most_chance"] >= brute.total / known - 1e-9
        assert answer["entropy"] is None
        assert answer["hamming"] is None
    text = workshop.python({"source": source, "beliefs": [0.4] * 16, "evidence": "1" + "-" * 15})["python"]
    assert "sp.split(" in text
    exec(compile(text, "the program", "exec"), {})


def test_broken_rules_of_a_split_are_named() -> None:
    beliefs = [0.9 if i in (0, 11) else 0.1 for i in range(16)]
    found = Workshop(SMALL).answer({"source": problem(POOLED), "beliefs": beliefs, "evidence": "-" * 16})
    assert "r2.c3 -> ~r0.c0" in [broken["rule"] for broken in found["independent"]["broken"]]


def test_progress_can_stop_a_compilation() -> None:
    class Stop(Exception):
        pass

    def stop(progress: object) -> None:
        raise Stop

    with pytest.raises(Stop):
        Workshop(Limits(), progress=stop).describe({"source": problem("", "grid", 6)})


def test_random_models_are_uniform_over_models() -> None:
    workshop, source = Workshop(Limits()), problem("a | b")
    drawn = [tuple(workshop.sample({"source": source})["sample"]) for _ in range(300)]
    assert {drawn.count(state) > 60 for state in ((0, 1), (1, 0), (1, 1))} == {True}
    assert (0, 0) not in drawn


CASES = [
    *((example["name"], example["problem"]) for example in examples()),
    ("quotes", problem("'it\\'s' | b\n# '''")["problem"]),
]


@pytest.mark.parametrize(("name", "asked"), CASES, ids=[name for name, _ in CASES])
def test_the_copied_program_does_what_the_page_shows(name: str, asked: dict[str, object]) -> None:
    workshop, source, rng = Workshop(Limits()), {"problem": asked}, random.Random(name)
    described = workshop.describe({"source": source})
    beliefs = [round(rng.uniform(0.2, 0.8), 2) for _ in described["labels"]]
    evidence = "".join("1" if one and i < 3 else "-" for i, one in enumerate(described["sample"]))
    request = {"source": source, "beliefs": beliefs, "evidence": evidence}
    names: dict[str, object] = {}
    exec(workshop.python(request)["python"], names)
    p, answer = names["p"], workshop.answer(request)
    assert list(p.labels) == described["labels"]
    assert str(names["circuit"].model_count()) == described["models"]
    torch.testing.assert_close(p.mean.double(), torch.tensor(answer["marginals"]).double(), atol=1e-4, rtol=0)
    assert p.mode.int().tolist() == answer["mode"]["state"]


MESSY = "a -> b\nvariable n: 0..2\nb ->\n  c  # goes on\n# a remark\nn >= 1 -> a\na -> c\nsame: a -> b"


def test_reviews_name_lines_and_rows() -> None:
    workshop = Workshop(Limits())
    rows = "a,b,c,n\n1,0,1,0\n1,1,,2\n0,1,0,1\n"
    found = workshop.review({"source": problem(MESSY), "rows": rows})
    assert [(rule["first"], rule["last"]) for rule in found["rules"]] == [(1, 1), (3, 4), (6, 6), (7, 7), (8, 8)]
    assert [rule["notes"] for rule in found["rules"]] == [
        ["1 row breaks it"],
        ["1 row breaks it"],
        ["1 row breaks it"],
        ["follows from others"],
        ["said twice", "1 row breaks it"],
    ]
    titles = [section["title"] for section in found["sections"]]
    rows_found = found["sections"][titles.index("2 of 3 rows break the rules")]["items"]
    assert rows_found[0].startswith("rows.csv:2: a -> b [line 1] and a -> b [line 8 same] (a=1, b=0)")
    assert titles[0].startswith("5 rules over 6 labels")


def test_dropped_rules_come_back() -> None:
    workshop = Workshop(Limits())
    dropped = MESSY.replace("b ->\n  c", "# dropped: b ->\n# dropped:   c")
    found = workshop.review({"source": problem(dropped)})
    assert [rule["dropped"] for rule in found["rules"]] == [False, True, False, False, False]
    assert (found["rules"][1]["first"], found["rules"][1]["last"]) == (3, 4)
    spoilt = MESSY.replace("a -> c", "# dropped: a -> -> c")
    assert len(workshop.review({"source": problem(spoilt)})["rules"]) == 4
    with pytest.raises(ParseError, match="there is no rule left"):
        workshop.review({"source": problem("# dropped: a -> b")})


def test_tables_that_do_not_fit() -> None:
    workshop, source = Workshop(Limits()), problem("a -> b")
    with pytest.raises(FormatError, match=r"^rows\.csv:1: there is no column 'b'"):
        workshop.review({"source": source, "rows": "a,c\n1,1\n"})
    with pytest.raises(RequestError, match="choose a table first"):
        workshop.learn({"source": source})
    with pytest.raises(FormatError, match=r"^rows\.csv: no column"):
        workshop.learn({"source": source, "rows": "x\nhello\n"})
    with pytest.raises(RequestError, match="typed"):
        workshop.review({"source": {"model": "x"}})
