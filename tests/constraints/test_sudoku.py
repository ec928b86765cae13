from __future__ import annotations

import numpy as np
import pytest

from semprola.constraints import sudoku
from semprola.errors import CompilationBudgetError, LabelError, UnsatisfiableError

PUZZLE = "53..7....6..195....98....6.8...6...34..8.3..17...2...6.6....28....419..5....8..79"
pytestmark = pytest.mark.filterwarnings("ignore:sp.constraints.sudoku goes:DeprecationWarning")

SOLUTION = "534678912672195348198342567859761423426853791713924856961537284287419635345286179"


def _givens(text):
    return {(i // 9 + 1, i % 9 + 1): int(digit) for i, digit in enumerate(text) if digit != "."}


def test_usual_puzzle():
    circuit = sudoku(3, _givens(PUZZLE)).to_circuit()
    assert circuit.model_count() == 1
    digits = circuit.enumerate().reshape(81, 9).argmax(axis=1) + 1
    assert "".join(map(str, digits)) == SOLUTION


def test_several_solutions_agree_with_the_definition():
    puzzle = sudoku(3, _givens(SOLUTION[:27] + "." * 9 + SOLUTION[36:54] + "." * 9 + SOLUTION[63:72] + "." * 9))
    circuit = puzzle.to_circuit()
    models = circuit.enumerate()
    assert len(models) == circuit.model_count() > 0
    assert puzzle.evaluate(models).all()
    assert not puzzle.evaluate(np.roll(models, 1, axis=1)).any()


def test_small(agrees):
    agrees(sudoku(1))
    assert sudoku(2).to_circuit().model_count() == 288
    assert sudoku().labels[:2] == ("r1c1=1", "r1c1=2")


def test_errors():
    with pytest.raises(UnsatisfiableError, match="no solution"):
        sudoku(2, {(1, 1): 1, (1, 2): 1}).to_circuit()
    with pytest.raises(LabelError, match=r"\(1, 5\): 1 is outside 1 to 4"):
        sudoku(2, {(1, 5): 1})
    with pytest.raises(LabelError, match="a given is"):
        sudoku(2, {3: 1})
    with pytest.raises(CompilationBudgetError, match="time budget"):
        sudoku(3).to_circuit(timeout=0.2)


def test_labels():
    rule = sudoku(1, labels=["only"])
    assert rule.labels == ("only",)
    assert rule.to_circuit().model_count() == 1
    with pytest.raises(CompilationBudgetError, match="64,000,000 labels"):
        sudoku(20)
