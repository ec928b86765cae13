"""What a new user does in the first ten minutes, with nothing but the installed package and its extra `cli`.

`python smoke.py` trains and predicts on a small table, with the command line and with the estimator, and fails unless
every prediction obeys the rules. With `--native` it fails, too, if the native module is missing or a compiler is there.
"""

from __future__ import annotations

import argparse
import csv
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

LABELS = ["cat", "dog", "animal"]
STATES = [[0, 0, 0], [0, 0, 1], [1, 0, 1], [0, 1, 1]]
RULES = "cat -> animal\ndog -> animal\n~(cat & dog)\n"


def main() -> None:
    """Run every check in a folder that is removed afterwards."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--native", action="store_true")
    native = parser.parse_args().native
    import semprola

    home = Path(semprola.__file__)
    require(home.is_relative_to(sys.prefix), f"semprola is imported from {home}, not from this environment")
    require(not (home.parents[1] / "experiments").exists(), "experiments are installed")
    if native:
        found = [name for name in ("cc", "gcc", "g++", "clang", "cl") if shutil.which(name)]
        require(not found, f"this environment has a compiler: {found}")
        semprola.engine.set_engine("native")  # fails where the native module is missing
    with tempfile.TemporaryDirectory() as folder:
        command_line(Path(folder), semprola.__version__)
    estimator()
    print(f"semprola {semprola.__version__}: every prediction obeys the rules")


def command_line(folder: Path, version: str) -> None:
    """`semprola --version`, `train` and `predict`."""
    program = Path(sys.executable).with_name("semprola")

    def run(*words: str) -> str:
        done = subprocess.run([program, *words], cwd=folder, capture_output=True, text=True)
        require(done.returncode == 0, f"semprola {' '.join(words)}: {done.stderr[-1000:]}")
        return done.stdout

    require(version in run("--version"), "--version says something else")
    folder.joinpath("rules.txt").write_text(RULES)
    write(folder / "animals.csv", rows(200, 0))
    write(folder / "new.csv", [[*row[:2]] for row in rows(100, 1)])
    words = ["--labels", ",".join(LABELS), "--rules", "rules.txt", "--out", "model", "--epochs", "15"]
    require("exact match" in run("train", "animals.csv", *words), "no exact match on held-out rows")
    run("predict", "model", "new.csv", "--out", "predictions.csv")
    with open(folder / "predictions.csv", newline="") as file:
        predicted = [[int(row[name]) for name in LABELS] for row in csv.DictReader(file)]
    require(len(predicted) == 100 and all(state in STATES for state in predicted), "a prediction breaks the rules")
    truth = [row[2:] for row in rows(100, 1)]
    right = sum(found == true for found, true in zip(predicted, truth, strict=True))
    require(right > 60, f"only {right} of 100 predictions are right")


def estimator() -> None:
    """`SPLClassifier` at the end of a pipeline."""
    import numpy as np
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    from semprola.sklearn import SPLClassifier

    table, new = np.array(rows(200, 0)), np.array(rows(100, 1))
    model = make_pipeline(StandardScaler(), SPLClassifier(RULES, LABELS, epochs=15, random_state=0))
    predicted = model.fit(table[:, :2], table[:, 2:]).predict(new[:, :2])
    require(all(state in STATES for state in predicted.tolist()), "the estimator breaks the rules")
    require(model.score(new[:, :2], new[:, 2:]) > 0.6, "the estimator has learnt too little")


def rows(count: int, seed: int) -> list[list[float]]:
    """Two numbers that say, with noise, which of the four states it is, and the three labels."""
    import random

    drawn = random.Random(seed)
    found = []
    for _ in range(count):
        state = drawn.randrange(4)
        inputs = [round(4 * (state in pair) + drawn.gauss(0, 1), 3) for pair in ((1, 2), (2, 3))]
        found.append([*inputs, *STATES[state]])
    return found


def write(path: Path, table: list[list[float]]) -> None:
    """As CSV, with names."""
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["weight", "noise", *LABELS][: len(table[0])])
        writer.writerows(table)


def require(holds: bool, message: str) -> None:
    """Stop with a message, also under `python -O`."""
    if not holds:
        raise SystemExit(f"smoke test: {message}")


if __name__ == "__main__":
    main()
