"""Logic programs against ProbLog's own numbers."""

from __future__ import annotations

import random

import pytest
import torch

import semprola as sp
from semprola.errors import FormatError, ParseError, SemprolaError, UnsatisfiableError

pytest.importorskip("problog")

from semprola.rules.grounding import grounded
from semprola.rules.logic_programs import from_ground

PUBLISHED = [
    """0.5::heads1. 0.6::heads2. twoHeads :- heads1, heads2. query(heads1). query(heads2). query(twoHeads).""",
    """0.7::burglary. 0.2::earthquake. 0.9::alarm :- burglary, earthquake. 0.8::alarm :- burglary, \\+earthquake.
    0.1::alarm :- \\+burglary, earthquake. evidence(alarm, true). query(burglary). query(earthquake).""",
    """person(a). person(b). 0.1::initialInf(X) :- person(X). 0.1::contact(a,b). inf(X) :- initialInf(X).
    0.6::inf(X) :- contact(X,Y), inf(Y). 0.6::inf(X) :- contact(Y,X), inf(Y). query(inf(_)).""",
    """0.3::stress(X) :- person(X). 0.2::influences(X,Y) :- person(X), person(Y). smokes(X) :- stress(X).
    smokes(X) :- friend(X,Y), influences(Y,X), smokes(Y). 0.4::asthma(X) :- smokes(X). person(1). person(2). person(3).
    person(4). friend(1,2). friend(2,1). friend(2,4). friend(3,2). friend(4,2). evidence(smokes(2), true).
    evidence(influences(4,2), false). query(smokes(1)). query(smokes(3)). query(smokes(4)). query(asthma(_)).""",
    """1/6::die(D,1); 1/6::die(D,2); 1/6::die(D,3); 1/6::die(D,4); 1/6::die(D,5); 1/6::die(D,6).
    sum(S) :- die(1,A), die(2,B), S is A+B. odd(D) :- die(D,V), V mod 2 =:= 1. evidence(odd(1)). query(sum(_)).""",
    """0.6::edge(1,2). 0.1::edge(1,3). 0.4::edge(2,5). 0.3::edge(2,6). 0.3::edge(3,4). 0.8::edge(4,5). 0.2::edge(5,6).
    path(X,Y) :- edge(X,Y). path(X,Y) :- edge(X,Z), Y \\= Z, path(Z,Y). query(path(1,5)). query(path(1,6)).""",
]


def _random_program(rng):
    """Facts, annotated disjunctions, rules with loops and stratified negation, evidence and queries."""
    lines = [f"{rng.choice([0.1, 0.25, 0.5, 0.9, 1.0])}::f{i}." for i in range(3)]
    lines.append("0.2::a0; 0.3::a1; 0.4::a2." if rng.random() < 0.5 else f"0.5::a0; 0.5::a1 :- f{rng.randrange(3)}.")
    lines.append("0.6::a2 :- f0, a0.")
    base = ["f0", "f1", "f2", "a0", "a1", "a2"]
    for stratum in range(3):
        own = [f"p{stratum}{i}" for i in range(2)]
        for head in own * 2:
            body = [rng.choice(base + own) for _ in range(rng.randint(1, 2))]
            body += [f"\\+{rng.choice(base)}"] if rng.random() < 0.5 else []
            lines.append(f"{'0.4::' if rng.random() < 0.3 else ''}{head} :- {', '.join(body)}.")
        base += own
    if rng.random() < 0.5:
        lines.append(f"evidence({rng.choice(base)}, {rng.choice(['true', 'false'])}).")
    return "\n".join([*lines, *(f"query({name})." for name in rng.sample(base, 4))])


def check_against_problog(text):
    """Whether the program is possible; all its probabilities are checked."""
    from problog import get_evaluatable
    from problog.eval_nodes import NegativeCycle
    from problog.evaluator import InconsistentEvidenceError
    from problog.program import PrologString

    try:
        expected = get_evaluatable().create_from(PrologString(text)).evaluate()
    except InconsistentEvidenceError:
        with pytest.raises(UnsatisfiableError):
            from_ground(grounded(text)).constrain()
        return False
    except NegativeCycle:  # what ProbLog takes for one: it refuses some stratified programs, too
        return False
    program = from_ground(grounded(text))
    p = program.constrain()
    assert set(program.derived) == {str(name) for name in expected}
    for name, probability in expected.items():
        assert p.log_prob_of({str(name): 1}).exp().item() == pytest.approx(probability, abs=1e-9), (text, name)
    return True


@pytest.mark.parametrize("text", PUBLISHED)
def test_published_examples(text):
    assert check_against_problog(text)


def test_random_programs():
    assert sum(check_against_problog(_random_program(random.Random(seed))) for seed in range(25)) > 15


def test_neural_predicates():
    program = sp.rules.from_problog("""
        nn(mnist, [X], Y, [0, 1, 2]) :: digit(X, Y).
        nn(sign, [X]) :: negative(X).
        total(X, Y, Z) :- digit(X, A), digit(Y, B), \\+ negative(X), Z is A + B.
        query(total(i1, i2, S)).
    """)
    assert list(program.neural) == list(program.heads) == ["mnist(i1)", "mnist(i2)", "sign(i1)"]
    assert program.heads["mnist(i2)"].values == ("0", "1", "2")
    assert program.heads["mnist(i2)"].inputs == ("i2",)
    assert program.derived == tuple(f"total(i1,i2,{s})" for s in range(5))
    torch.manual_seed(0)
    a, b, n = torch.randn(4, 3, requires_grad=True), torch.randn(4, 3), torch.randn(4)
    p = program.constrain({"mnist(i1)": a, "mnist(i2)": b, "sign(i1)": n})
    pa, pb = a.softmax(-1), b.softmax(-1)
    for total in range(5):
        pairs = [(x, total - x) for x in range(3) if 0 <= total - x < 3]
        expected = sum(pa[:, x] * pb[:, y] for x, y in pairs) * (-n).sigmoid()
        torch.testing.assert_close(p.log_prob_of({f"total(i1,i2,{total})": 1}).exp(), expected)
    with pytest.raises(SemprolaError, match=r"no logits for the neural predicate 'mnist\(i2\)'"):
        program.constrain({"mnist(i1)": a})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0.3::a :- ", "Incomplete statement"),
        ("query(b).", "No clauses found for 'b/0'"),
        ("1.3::a. query(a).", "1.3 is not a probability"),
        ("0.3::a(X). query(a(X)).", "non-ground probabilistic clause"),
        ("nn(m, [X], 3) :: p(X). query(p(1)).", "a neural predicate is nn"),
    ],
)
def test_bad_programs(text, message):
    with pytest.raises(ParseError, match=message):
        sp.rules.from_problog(text)


def test_programs_in_files(tmp_path):
    path = tmp_path / "rain.pl"
    path.write_text("0.2::rain. query(rain).")
    for source in (path, str(path)):
        assert sp.rules.from_problog(source).derived == ("rain",)
    with pytest.raises(FormatError, match=r"missing\.pl: no such file"):
        sp.rules.from_problog("missing.pl")
    with pytest.raises(TypeError, match="takes the text of a program or the path of a file, not 3"):
        sp.rules.from_problog(3)


def test_impossible_evidence_and_endless_programs():
    with pytest.raises(UnsatisfiableError, match="the evidence about b is impossible"):
        sp.rules.from_problog("0.2::a. evidence(b). b :- a, \\+a. query(a).")
    with pytest.raises(SemprolaError, match="took more than 2 seconds"):
        sp.rules.from_problog("p(X) :- q(s(X)). q(X) :- p(s(X)). query(p(a)).", timeout=2)
