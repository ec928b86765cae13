"""All methods on "smokers and friends". `python examples/compare_smokers.py`.

Four people: who smokes, who are friends, who has asthma, who sees a doctor? Friends of smokers smoke, and smokers with
asthma see a doctor. The rules are written once for all people. Questionnaires are noisy; the true answers obey the
rules. Takes about two minutes.
"""

from __future__ import annotations

import argparse
from itertools import combinations

import numpy as np

import semprola as sp

PEOPLE = ["ann", "bob", "eve", "dan"]
smokes, asthma, doctor, friends = (sp.logic.Predicate(name) for name in ("smokes", "asthma", "doctor", "friends"))
LEVELS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)
NOISE = 0.3
"""Standard deviation of the noise on answers of 0 and 1: what `choose_noise` returns."""


def rules() -> sp.Formula:
    """Friends of smokers smoke, both ways; smokers with asthma see a doctor."""
    together = sp.logic.forall(
        PEOPLE,
        PEOPLE,
        lambda a, b: (friends(*sorted((a, b))) & smokes(a)) >> smokes(b),
        where=lambda a, b: a != b,
    )
    return together & sp.logic.forall(PEOPLE, lambda a: (smokes(a) & asthma(a)) >> doctor(a))


def world(random: np.random.Generator) -> dict[str, bool]:
    """Friends at random; circles of friends smoke or not; some have asthma."""
    true = {str(friends(a, b).name): bool(random.random() < 0.3) for a, b in combinations(sorted(PEOPLE), 2)}
    smokers = {a for a in PEOPLE if random.random() < 0.3}
    for _ in PEOPLE:
        smokers |= {b for a in smokers for b in PEOPLE if a != b and true[friends(*sorted((a, b))).name]}
    for a in PEOPLE:
        sick = random.random() < 0.4
        true |= {smokes(a).name: a in smokers, asthma(a).name: sick}
        true[doctor(a).name] = sick and (a in smokers or random.random() < 0.3)
    return true


def rows(noise: float = NOISE, *, count: int = 900, seed: int = 2) -> tuple[np.ndarray, np.ndarray]:
    """Noisy answers to all questions, and the true ones."""
    random = np.random.default_rng(seed)
    worlds = [world(random) for _ in range(count)]
    y = np.array([[true[name] for name in rules().labels] for true in worlds], float)
    return y + noise * random.normal(size=y.shape), y


def choose_noise() -> float:
    """The noise at which independent labels get about half of the rows of another sample right."""
    reached = {}
    for noise in LEVELS:
        x, y = rows(noise, seed=1)
        reached[noise] = sp.comparison.compare_methods(x, y, rules(), methods=["fil"], epochs=30, seed=1).mean(
            "fil", "exact"
        )
        print(f"noise {noise}: independent labels have {reached[noise]:.1f} % of the other rows right")
    return min(LEVELS, key=lambda noise: abs(reached[noise] - 50))


def main() -> None:
    """Compare, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--folds", type=int, default=3)
    parser.add_argument("--rows", type=int, default=900)
    parser.add_argument("--out", default=None, help="folder for the report")
    parser.add_argument("--choose-noise", action="store_true", help="show how the noise was chosen")
    options = parser.parse_args()
    if options.choose_noise:
        print(f"chosen: {choose_noise()}")
        return
    x, y = rows(count=options.rows)
    result = sp.comparison.compare_methods(x, y, rules(), epochs=options.epochs, folds=options.folds, seed=2, say=print)
    print(f"\n{result}")
    if options.out is not None:
        from semprola.comparison.report import write_report

        write_report(result, f"{options.out}/report.html", command="python examples/compare_smokers.py")


if __name__ == "__main__":
    main()
