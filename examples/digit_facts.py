"""Digits and facts about them: a small convolutional net with and without rules. `python examples/digit_facts.py`.

Each picture has thirteen labels: which digit it is, and whether that is even, prime, small. The rules say how the
labels depend on each other. Two networks see the same few pictures: one ends in independent labels, the other in a
semantic probabilistic layer. Takes about 15 seconds.
"""

import argparse

import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn

import semprola as sp

DIGITS = [f"digit{number}" for number in range(10)]
FACTS = {"even": [0, 2, 4, 6, 8], "prime": [2, 3, 5, 7], "small": [0, 1, 2, 3, 4]}
RULES = sp.And(
    sp.one_hot(DIGITS),
    *(sp.Iff(sp.Bool(fact), sp.Or(*(sp.Bool(DIGITS[number]) for number in who))) for fact, who in FACTS.items()),
)
LABELS = [*DIGITS, *FACTS]


def rows() -> tuple[Tensor, Tensor]:
    """Pictures [rows, 1, 8, 8] and labels [rows, 13]."""
    pictures, digit = load_digits(return_X_y=True)
    facts = torch.zeros(10, len(FACTS))
    for column, who in enumerate(FACTS.values()):
        facts[who, column] = 1
    table = torch.cat([torch.eye(10), facts], dim=1)
    return torch.tensor(pictures / 16, dtype=torch.float32).view(-1, 1, 8, 8), table[torch.tensor(digit)]


def network(last: nn.Module) -> nn.Sequential:
    """Two convolutions, 64 features, and the last layer."""
    return nn.Sequential(
        nn.Conv2d(1, 12, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(12, 24, 3, padding=1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(24 * 16, 64),
        nn.ReLU(),
        last,
    )


def predicted(constrained: bool, x: Tensor, y: Tensor, count: int, seed: int, epochs: int) -> tuple[Tensor, Tensor]:
    """Train on some rows; return the numbers of the test rows and the labels predicted for them."""
    torch.manual_seed(seed)
    order = torch.randperm(len(x))
    train, test = order[:count], order[-800:]
    net = network(sp.SPL(64, sp.compile(RULES, labels=LABELS)) if constrained else nn.Linear(64, len(LABELS)))
    optimizer = torch.optim.Adam(net.parameters(), lr=0.003)
    for _ in range(epochs):
        for batch in train[torch.randperm(count)].split(32):
            if constrained:
                loss = -net(x[batch]).log_prob(y[batch]).mean()
            else:
                loss = nn.functional.binary_cross_entropy_with_logits(net(x[batch]), y[batch]) * len(LABELS)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    with torch.no_grad():
        return test, net(x[test]).mode if constrained else (net(x[test]) > 0).float()


def run(constrained: bool, x: Tensor, y: Tensor, count: int, seed: int, epochs: int) -> list[float]:
    """Share of the test pictures whose labels are all right, and whose labels obey the rules."""
    test, found = predicted(constrained, x, y, count, seed, epochs)
    obeys = RULES.evaluate(found, LABELS)
    return [float((found == y[test]).all(1).double().mean()), float(obeys.double().mean())]


def main() -> None:
    """Compare, and print the means over some seeds."""
    parser = argparse.ArgumentParser()
    for name, default in {"rows": 200, "epochs": 40, "seeds": 3}.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    options = parser.parse_args()
    x, y = rows()
    print(f"{options.rows} training pictures{'all labels right':>20}{'obey the rules':>18}")
    for name, constrained in {"independent labels": False, "SPL": True}.items():
        runs = [run(constrained, x, y, options.rows, seed, options.epochs) for seed in range(options.seeds)]
        right, obeys = torch.tensor(runs).mean(0).tolist()
        print(f"{name:21}{right:20.1%}{obeys:18.1%}")


if __name__ == "__main__":
    main()
