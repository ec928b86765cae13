"""All methods on handwritten digits: which digit, and is it even, prime, small? `python examples/compare_digits.py`.

The rules tie thirteen labels together: exactly one digit, and what follows from it. Takes about two minutes.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from sklearn.datasets import load_digits

import semprola as sp

DIGITS = [f"digit{number}" for number in range(10)]
FACTS = {"even": {0, 2, 4, 6, 8}, "prime": {2, 3, 5, 7}, "small": {0, 1, 2, 3, 4}}
LEVELS = (1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0)
NOISE = 4.0
"""Standard deviation of the noise on pixels of 0 to 16: what `choose_noise` returns."""


def rules() -> sp.Formula:
    """Exactly one digit holds, and every fact holds if and only if one of its digits does."""
    facts = [
        sp.Iff(sp.Bool(name), sp.Or(*[sp.Bool(DIGITS[number]) for number in digits])) for name, digits in FACTS.items()
    ]
    return sp.And(sp.one_hot(DIGITS), *facts)


def rows(noise: float = NOISE, *, other: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Pictures with noise, so that the task is not too easy, and labels; `other`: a fifth not used to compare."""
    pictures, digit = load_digits(return_X_y=True)
    kept = (np.arange(len(digit)) % 5 == 0) == other
    pictures, digit = pictures[kept], digit[kept]
    pictures = pictures + noise * np.random.default_rng(1 if other else 2).normal(size=pictures.shape)
    facts = [np.isin(digit, list(digits)) for digits in FACTS.values()]
    return pictures, np.concatenate([np.eye(10)[digit], np.stack(facts, 1)], 1)


def compare(x: np.ndarray, y: np.ndarray, **options: Any) -> sp.comparison.Comparison:
    """The methods on these rows."""
    return sp.comparison.compare_methods(x, y, rules(), labels=[*DIGITS, *FACTS], **options)


def choose_noise() -> float:
    """The noise at which independent labels get about half of the pictures outside the comparison right."""
    reached = {}
    for noise in LEVELS:
        reached[noise] = compare(*rows(noise, other=True), methods=["fil"], epochs=30, seed=1).mean("fil", "exact")
        print(f"noise {noise}: independent labels have {reached[noise]:.1f} % of the other pictures right")
    return min(LEVELS, key=lambda noise: abs(reached[noise] - 50))


def main() -> None:
    """Compare, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--folds", type=int, default=3)
    parser.add_argument("--out", default=None, help="folder for the report")
    parser.add_argument("--choose-noise", action="store_true", help="show how the noise was chosen")
    options = parser.parse_args()
    if options.choose_noise:
        print(f"chosen: {choose_noise()}")
        return
    result = compare(*rows(), epochs=options.epochs, folds=options.folds, seed=2, say=print)
    print(f"\n{result}")
    if options.out is not None:
        from semprola.comparison.report import write_report

        write_report(result, f"{options.out}/report.html", command="python examples/compare_digits.py")


if __name__ == "__main__":
    main()
