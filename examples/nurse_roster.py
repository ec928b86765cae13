"""Plan who works when, from noisy wishes. `python examples/nurse_roster.py`.

Five nurses, four days, a day shift and a night shift: 40 labels. Every day shift needs two nurses, every night shift
one. Nobody works two shifts on the same day, a day shift after a night shift, or more than three shifts in all. Past
rosters were planned from the true wishes. We see only noisy wishes, and learn to plan in the same way. Independent
labels hardly ever give a usable roster. Takes about ten seconds.
"""

import argparse
from itertools import product

import torch
from torch import Tensor, nn

import semprola as sp

NURSES, DAYS, SHIFTS = ["ann", "bob", "eve", "dan", "kim"], range(4), {"day": 2, "night": 1}
LABELS = [f"{nurse}_{day}_{shift}" for day, shift, nurse in product(DAYS, SHIFTS, NURSES)]


def works(nurse: str, day: int, shift: str) -> sp.Formula:
    """The label "this nurse has that shift"."""
    return sp.Bool(f"{nurse}_{day}_{shift}")


def rules() -> sp.Formula:
    """What every roster obeys."""
    staff = [
        sp.exactly(need, [works(nurse, day, shift) for nurse in NURSES])
        for day in DAYS
        for shift, need in SHIFTS.items()
    ]
    once = [sp.at_most(1, [works(nurse, day, shift) for shift in SHIFTS]) for nurse in NURSES for day in DAYS]
    rest = [~(works(nurse, day, "night") & works(nurse, day + 1, "day")) for nurse in NURSES for day in DAYS[:-1]]
    load = [sp.at_most(3, [works(nurse, day, shift) for day in DAYS for shift in SHIFTS]) for nurse in NURSES]
    return sp.And(*staff, *once, *rest, *load)


def history(layer: sp.ConstraintLayer, count: int, noise: float, seed: int) -> tuple[Tensor, Tensor]:
    """Noisy wishes and the rosters that fit the true wishes best, both [count, 40]."""
    torch.manual_seed(seed)
    wishes = 2 * torch.randn(count, len(LABELS))
    return wishes + noise * torch.randn(wishes.shape), layer(wishes).mode


def network(layer: nn.Module) -> nn.Sequential:
    """One logit per nurse and shift, from all wishes, followed by the layer."""
    return nn.Sequential(nn.Linear(len(LABELS), len(LABELS)), layer)


def train(net: nn.Module, x: Tensor, y: Tensor, epochs: int) -> None:
    """Maximise the likelihood of whole rosters if the network ends in a layer with rules, else of single labels."""
    optimizer = torch.optim.Adam(net.parameters(), lr=0.005)
    for _ in range(epochs):
        for rows in torch.randperm(len(x)).split(50):
            out = net(x[rows])
            if isinstance(out, Tensor):
                loss = nn.functional.binary_cross_entropy_with_logits(out, y[rows]) * len(LABELS)
            else:
                loss = -out.log_prob(y[rows]).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


def main() -> None:
    """Plan in three ways, and print how good the rosters are."""
    parser = argparse.ArgumentParser()
    for name, default in {"rows": 500, "epochs": 20, "seeds": 2}.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    options = parser.parse_args()
    layer, figures = sp.ConstraintLayer(rules(), labels=LABELS), []
    print(f"{layer.circuit.model_count():,} rosters obey the rules")
    for seed in range(options.seeds):
        x, y = history(layer, options.rows, 0.5, seed)
        new, truth = history(layer, 300, 0.5, seed + 1000)
        nets = []
        for last in (nn.Identity(), layer):
            torch.manual_seed(seed)
            nets.append(network(last))
            train(nets[-1], x, y, options.epochs)
        with torch.no_grad():
            logits, p = nets[0](new), nets[1](new)
            found = [(logits > 0).float(), layer(logits).mode, p.mode]
        valid = [torch.tensor(layer.circuit.satisfied(states.numpy())) for states in found]
        same = [(states == truth) for states in found]
        rows = zip(valid, same, strict=True)
        figures.append([[v.double().mean(), s.double().mean(), s.all(1).double().mean()] for v, s in rows])
    print(f"{'':28}{'can be used':>14}{'labels right':>14}{'rosters right':>15}")
    names = ["independent labels", "rules added", "rules in training too"]
    for name, row in zip(names, torch.tensor(figures).mean(0), strict=True):
        print(f"{name:28}{row[0]:14.1%}{row[1]:14.1%}{row[2]:15.1%}")


if __name__ == "__main__":
    main()
