"""All methods on handwritten digits: which digit, and is it even, prime, small? `python examples/compare_digits.py`.

The rules tie thirteen labels together: exactly one digit, and what follows from it. Takes two to three minutes.
"""

from __future__ import annotations

import argparse

import numpy as np
from sklearn.datasets import load_digits

import semprola as sp

DIGITS = [f"digit{number}" for number in range(10)]
FACTS = {"even": {0, 2, 4, 6, 8}, "prime": {2, 3, 5, 7}, "small": {0, 1, 2, 3, 4}}


def rules() -> sp.Formula:
    """Exactly one digit is there, and every fact holds if and only if one of its digits is there."""
    facts = [
        sp.Iff(sp.Bool(name), sp.Or(*[sp.Bool(DIGITS[number]) for number in digits])) for name, digits in FACTS.items()
    ]
    return sp.And(sp.one_hot(DIGITS), *facts)


def rows(noise: float = 6.0) -> tuple[np.ndarray, np.ndarray]:
    """Pictures with noise, so that the task is not too easy, and all labels."""
    pictures, digit = load_digits(return_X_y=True)
    pictures = pictures + noise * np.random.default_rng(0).normal(size=pictures.shape)
    facts = [np.isin(digit, list(digits)) for digits in FACTS.values()]
    return pictures, np.concatenate([np.eye(10)[digit], np.stack(facts, 1)], 1)


def main() -> None:
    """Compare, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--folds", type=int, default=3)
    parser.add_argument("--out", default=None, help="folder for the report")
    options = parser.parse_args()
    x, y = rows()
    result = sp.compare_methods(
        x, y, rules(), labels=[*DIGITS, *FACTS], epochs=options.epochs, folds=options.folds, say=print
    )
    print(f"\n{result}")
    if options.out is not None:
        from semprola.comparison.report import write_report

        write_report(result, f"{options.out}/report.html", command="python examples/compare_digits.py")


if __name__ == "__main__":
    main()
