"""Read 4×4 sudokus from sixteen noisy pictures of the digits 1 to 4. `python examples/visual_sudoku.py`.

A small convolutional net reads each cell. Cell by cell, one wrong digit spoils the board. With the rules, all sixteen
cells are read at once: the answer is the most probable of the 288 valid boards, and training uses the rules too. The
pictures of the test boards are not used for training. Takes about ten seconds.
"""

import argparse

import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn

import semprola as sp

DIGITS = range(1, 5)
LABELS = [f"r{row}c{column}={digit}" for row in DIGITS for column in DIGITS for digit in DIGITS]
CELLS = torch.arange(64).view(2, 2, 2, 2, 4)  # box and row in it, box and column in it, digit
GROUPS = [CELLS.flatten(0, 3), CELLS.permute(0, 1, 4, 2, 3), CELLS.permute(2, 3, 4, 0, 1), CELLS.permute(0, 2, 4, 1, 3)]
RULES = sp.And([sp.one_hot([LABELS[i] for i in group]) for part in GROUPS for group in part.reshape(-1, 4)])
# as a table of its 288 boards, the circuit is smaller than as rules
CIRCUIT = sp.compile(sp.constraints.table(sp.compile(RULES, LABELS).enumerate(), labels=LABELS))
BOARDS = torch.tensor(CIRCUIT.enumerate(), dtype=torch.float32)  # [288, 64]


def boards(count: int, noise: float, test: bool, seed: int) -> tuple[Tensor, Tensor]:
    """Boards as pictures [count, 16, 8, 8] and as labels [count, 64]; every fifth picture is kept for testing."""
    torch.manual_seed(seed + 1000 * test)
    pictures, digits = (torch.tensor(part, dtype=torch.float32) for part in load_digits(return_X_y=True))
    kept = (torch.arange(len(digits)) % 5 == 0) == test
    y = BOARDS[torch.randint(len(BOARDS), (count,))]
    cells = y.view(count, 16, 4).argmax(-1) + 1
    x = torch.empty(count, 16, 8, 8)
    for digit in range(1, 5):
        where = cells == digit
        pool = pictures[kept & (digits == digit)].view(-1, 8, 8)
        x[where] = pool[torch.randint(len(pool), (int(where.sum()),))] / 16
    return x + noise * torch.randn(x.shape), y


class Reader(nn.Module):
    """Logits [boards, 64] of the four digits in each of the sixteen cells."""

    def __init__(self) -> None:
        super().__init__()
        picture = (nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten())
        self.cell = nn.Sequential(*picture, nn.Linear(16 * 16, 32), nn.ReLU(), nn.Linear(32, 4))

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.cell(x.view(-1, 1, 8, 8))
        return logits.view(-1, 64)


def train(last: nn.Module | None, x: Tensor, y: Tensor, seed: int, epochs: int) -> Reader:
    """A reader trained with the rules, or cell by cell."""
    torch.manual_seed(seed)
    reader = Reader()
    optimizer = torch.optim.Adam(reader.parameters(), lr=0.003)
    for _ in range(epochs):
        for rows in torch.randperm(len(x)).split(16):
            logits = reader(x[rows])
            if last is None:
                loss = nn.functional.cross_entropy(logits.view(-1, 4), y[rows].view(-1, 4)) * 16
            else:
                loss = -last(logits).log_prob(y[rows]).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return reader


def main() -> None:
    """Read boards in three ways, and print the means over some seeds."""
    parser = argparse.ArgumentParser()
    for name, default in {"boards": 100, "epochs": 20, "seeds": 3}.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--noise", type=float, default=0.5, help="of pixels from 0 to 1")
    options = parser.parse_args()
    layer, figures = sp.ConstraintLayer(CIRCUIT), []
    for seed in range(options.seeds):
        x, y = boards(options.boards, options.noise, False, seed)
        new, truth = boards(500, options.noise, True, seed)
        readers = [train(last, x, y, seed, options.epochs) for last in (None, layer)]
        with torch.no_grad():
            plain, joint = (reader(new) for reader in readers)
            cells = nn.functional.one_hot(plain.view(-1, 16, 4).argmax(-1), 4).float().view(-1, 64)
            found = [cells, layer(plain).mode, layer(joint).mode]
        valid = [torch.tensor(CIRCUIT.satisfied(states.numpy())).double().mean() for states in found]
        figures.append([[(s == truth).all(1).double().mean(), v] for s, v in zip(found, valid, strict=True)])
    print(f"{'':34}{'boards right':>14}{'are sudokus':>14}")
    for name, row in zip(
        ["cell by cell", "rules added", "rules in training too"], torch.tensor(figures).mean(0), strict=True
    ):
        print(f"{name:34}{row[0]:14.1%}{row[1]:14.1%}")


if __name__ == "__main__":
    main()
