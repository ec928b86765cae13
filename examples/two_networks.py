"""Two networks, one rule between them: digits that add up. `python examples/two_networks.py`.

One network reads a handwritten digit, another reads a digit that is upside down and noisy. Few pairs are labelled; for
many others only the sum is known, as on a receipt. The rule "left + right = sum" ties the two networks together: their
logits go through one layer, so that the sum trains both. Takes about half a minute.
"""

import argparse

import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn

import semprola as sp

LEFT, RIGHT, SUM = ([f"{name}{n}" for n in range(top)] for name, top in [("left", 10), ("right", 10), ("sum", 19)])
PAIRS = [[(i, s - i) for i in range(10) if 0 <= s - i <= 9] for s in range(19)]
RULES = sp.And(
    sp.one_hot(LEFT),
    sp.one_hot(RIGHT),
    *(
        sp.Iff(sp.Bool(SUM[s]), sp.Or(*(sp.Bool(LEFT[i]) & sp.Bool(RIGHT[j]) for i, j in pairs)))
        for s, pairs in enumerate(PAIRS)
    ),
)
LAYER = sp.ConstraintLayer(RULES, labels=[*LEFT, *RIGHT, *SUM])


class Pair(nn.Module):
    """One network per picture; the sum has no network, so its logits are zero and only the rules decide it."""

    def __init__(self) -> None:
        super().__init__()
        self.left = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
        self.right = nn.Sequential(nn.Linear(64, 96), nn.Tanh(), nn.Linear(96, 10))

    def forward(self, x: Tensor) -> sp.distributions.ProductDistribution:
        left, right = self.left(x[:, 0]), self.right(x[:, 1])
        return LAYER(torch.cat([left, right, left.new_zeros(len(x), len(SUM))], dim=1))


def pairs(count: int, test: bool, seed: int) -> tuple[Tensor, Tensor]:
    """Pictures [count, 2, 64] and labels [count, 39]; every third picture is kept for testing."""
    torch.manual_seed(seed + 1000 * test)
    pictures, digits = load_digits(return_X_y=True)
    kept = torch.nonzero((torch.arange(len(digits)) % 3 == 0) == test).flatten()
    drawn = kept[torch.randint(len(kept), (count, 2))]
    x, digit = torch.tensor(pictures / 16, dtype=torch.float32)[drawn], torch.tensor(digits)[drawn]
    x[:, 1] = x[:, 1].flip(-1) + 0.3 * torch.randn(count, 64)
    ones = [nn.functional.one_hot(values, size) for values, size in [(digit[:, 0], 10), (digit[:, 1], 10)]]
    return x, torch.cat([*ones, nn.functional.one_hot(digit.sum(1), 19)], dim=1).float()


def accuracies(sums: int, labelled: int, seed: int, epochs: int) -> list[float]:
    """Shares of new pairs with the left digit correct, the right one, both, and both if the sum is known."""
    x, y = pairs(labelled + sums, False, seed)
    y[labelled:, : len(LEFT) + len(RIGHT)] = torch.nan
    new, truth = pairs(1000, True, seed)
    net = Pair()
    optimizer = torch.optim.Adam(net.parameters(), lr=0.003)
    for _ in range(epochs):
        order = torch.randperm(len(x))
        for rows in order.split(max(1, len(x) // 20)):  # about twenty steps per epoch, for any number of rows
            loss = -net(x[rows]).log_marginal(y[rows]).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    with torch.no_grad():
        p = net(new)
        hint = truth.clone()
        hint[:, : len(LEFT) + len(RIGHT)] = torch.nan
        alone, told = p.mode == truth, p.condition(hint).mode == truth
    parts = [alone[:, :10], alone[:, 10:20], alone, told]
    return [float(part.all(1).double().mean()) for part in parts]


def main() -> None:
    """Train without and with sums, and print the means over some seeds."""
    parser = argparse.ArgumentParser()
    for name, default in {"labelled": 60, "sums": 600, "epochs": 30, "seeds": 3}.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    options = parser.parse_args()
    print(f"{'':42}{'left':>8}{'right':>8}{'both':>8}{'both, sum told':>16}")
    for text, sums in {f"{options.labelled} labelled pairs": 0, f"… and {options.sums} sums": options.sums}.items():
        runs = [accuracies(sums, options.labelled, seed, options.epochs) for seed in range(options.seeds)]
        left, right, both, told = torch.tensor(runs).mean(0).tolist()
        print(f"{text:42}{left:8.1%}{right:8.1%}{both:8.1%}{told:16.1%}")


if __name__ == "__main__":
    main()
