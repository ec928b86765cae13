"""Learn digits from few labels and many hints. `python examples/weak_labels.py`.

Forty pictures have all their labels. For the others, somebody noted only some labels ("even, not prime; no idea which
digit"; the rest are NaN), or only a statement ("a 3 or an 8"). The loss is minus the log-probability of what is known,
and the rules turn it into knowledge about the digits. Takes about 15 seconds.
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
ALIKE = [(0, 6), (1, 7), (2, 5), (3, 8), (4, 9)]
CIRCUIT = sp.compile(RULES, labels=[*DIGITS, *FACTS])


def rows() -> tuple[Tensor, Tensor, Tensor]:
    """Pictures [rows, 64], labels [rows, 13] and digits [rows], in a fixed random order."""
    pictures, digit = load_digits(return_X_y=True)
    order = torch.randperm(len(digit), generator=torch.Generator().manual_seed(0))
    digits = torch.tensor(digit)[order]
    facts = torch.zeros(10, len(FACTS))
    for column, who in enumerate(FACTS.values()):
        facts[who, column] = 1
    table = torch.cat([torch.eye(10), facts], dim=1)
    return torch.tensor(pictures / 16, dtype=torch.float32)[order], table[digits], digits


def known_loss(net: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    """Minus the mean log-probability of the labels that are not NaN."""
    return -net(x).log_marginal(y).mean()


def stated_loss(net: nn.Module, x: Tensor, digits: Tensor) -> Tensor:
    """Minus the mean log-probability of statements "it is one of these two", with one pair per picture."""
    total = torch.zeros(())
    for pair in ALIKE:
        which = torch.isin(digits, torch.tensor(pair))
        if which.any():
            statement = sp.Or(*(sp.Bool(DIGITS[number]) for number in pair))
            total = total - net(x[which]).log_prob_of(statement).sum()
    return total / len(x)


def accuracy(hints: set[str], labelled: int, seed: int, epochs: int) -> float:
    """Share of 800 new pictures with all labels right, after training on the labelled rows and these hints."""
    x, y, digits = rows()
    facts_only = y[:400].clone()
    facts_only[:, : len(DIGITS)] = torch.nan
    torch.manual_seed(seed)
    chosen = torch.randperm(197)[:labelled] + 800
    net = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), sp.SPL(64, CIRCUIT))
    optimizer = torch.optim.Adam(net.parameters(), lr=0.003)
    for _ in range(epochs):
        for part in torch.randperm(400).split(50):
            loss = known_loss(net, x[chosen], y[chosen])
            if "facts" in hints:
                loss = loss + known_loss(net, x[part], facts_only[part])
            if "statements" in hints:
                loss = loss + stated_loss(net, x[400 + part], digits[400 + part])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    with torch.no_grad():
        return float((net(x[-800:]).mode == y[-800:]).all(1).double().mean())


def main() -> None:
    """Train with fewer and more hints, and print the means over some seeds."""
    parser = argparse.ArgumentParser()
    for name, default in {"labelled": 40, "epochs": 15, "seeds": 3}.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    options = parser.parse_args()
    print(f"{'what is known':52}{'all labels right':>18}")
    for text, hints in {
        f"{options.labelled} pictures with all labels": set(),
        "… and 400 of which only the facts are known": {"facts"},
        "… and 400 of which only a statement is known": {"statements"},
        "… and both": {"facts", "statements"},
    }.items():
        found = [accuracy(hints, options.labelled, seed, options.epochs) for seed in range(options.seeds)]
        print(f"{text:52}{sum(found) / len(found):18.1%}")


if __name__ == "__main__":
    main()
