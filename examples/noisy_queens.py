"""Read boards of sixteen queens from three noisy sensors per square. `python examples/noisy_queens.py`.

Queens do not attack each other: one per row and per column, at most one per diagonal. One circuit of these 256 labels
and 90 rules is far too large, so they are split into circuits that together state them. A network of four numbers, the
same for every square, learns how far to trust each sensor: square by square, or by the lower bound of the likelihood of
whole boards. Every board is then read as the most probable one that obeys all rules. Takes about ten seconds.
"""

import argparse
import random

import torch
from torch import Tensor, nn

import semprola as sp

NOISE = (0.55, 0.9, 1.5)  # standard deviation of each sensor, which the network does not know


def rules(n: int) -> sp.Formula:
    """What every board obeys."""
    square = [[sp.Bool(f"{row},{column}") for column in range(n)] for row in range(n)]
    diagonals: dict[tuple[str, int], list[sp.Formula]] = {}
    for row in range(n):
        for column in range(n):
            for line in (("down", row - column), ("up", row + column)):
                diagonals.setdefault(line, []).append(square[row][column])
    one = [sp.exactly(1, line) for line in (*square, *zip(*square, strict=True))]
    return sp.And(*one, *(sp.at_most(1, line) for line in diagonals.values() if len(line) > 1))


def board(n: int, rng: random.Random, columns: tuple[int, ...] = ()) -> tuple[int, ...] | None:
    """A random board, as the column of the queen in every row, found by backtracking."""
    row = len(columns)
    if row == n:
        return columns
    for column in rng.sample(range(n), n):
        if all(column != c and abs(column - c) != row - r for r, c in enumerate(columns)):
            found = board(n, rng, (*columns, column))
            if found is not None:
                return found
    return None


def sensed(n: int, count: int, seed: int) -> tuple[Tensor, Tensor]:
    """What the sensors say [count, n * n, sensors], and the boards [count, n * n]."""
    rng = random.Random(seed)
    y = torch.eye(n)[torch.tensor([board(n, rng) for _ in range(count)])].flatten(1)
    noise = torch.randn(*y.shape, len(NOISE), generator=torch.Generator().manual_seed(seed))
    return y[..., None] + noise * torch.tensor(NOISE), y


def network() -> nn.Sequential:
    """The log-odds of every square, from its sensors."""
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(len(NOISE), 1), nn.Flatten())


def train(net: nn.Module, layer: nn.Module | None, x: Tensor, y: Tensor, epochs: int) -> None:
    """Maximise the likelihood of single squares, or with a layer the lower bound of that of whole boards."""
    optimizer = torch.optim.Adam(net.parameters(), lr=0.1)
    for _ in range(epochs):
        for rows in torch.randperm(len(x)).split(20):
            odds = net(x[rows])
            single = nn.functional.binary_cross_entropy_with_logits(odds, y[rows])
            loss = single if layer is None else -layer(odds).log_score(y[rows]).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


def main() -> None:
    """Read boards in three ways, and print how many are right."""
    parser = argparse.ArgumentParser()
    for name, default in {"queens": 16, "boards": 60, "epochs": 15, "tests": 25}.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    options = parser.parse_args()
    n = options.queens
    split = sp.split(rules(n), max_nodes=300)
    print(split)
    x, y = sensed(n, options.boards, 0)
    seen, truth = sensed(n, options.tests, 1)
    layer, cells, boards = sp.ConstraintLayer(split), network(), network()
    train(cells, None, x, y, options.epochs)
    train(boards, layer, x, y, options.epochs)
    with torch.no_grad():
        best = cells(seen).unflatten(1, (n, n)).argmax(2)
        added, trained = layer(cells(seen)), layer(boards(seen))
        found = {"best square of every row": torch.eye(n)[best].flatten(1)}
        found |= {"rules added": added.mode, "rules in training too": trained.mode}
    print(f"{'':<26}{'obey the rules':>16}{'boards right':>14}")
    for name, states in found.items():
        obey, right = split.satisfied(states).float().mean(), (states == truth).all(1).float().mean()
        print(f"{name:<26}{obey:>16.1%}{right:>14.1%}")
    print(f"proven to be the most probable: {trained.mode_is_exact.float().mean():.1%}")


if __name__ == "__main__":
    main()
