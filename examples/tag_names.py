"""Find names in sentences: BIO tags from a BiLSTM, and rules that hold. `python examples/tag_names.py`.

Most names in the test sentences are new, so only the words around them help. Compares with pytorch-crf, if installed.
"""

import argparse
import random
import time
from typing import Any

import torch
from torch import Tensor, nn

import semprola as sp

try:
    from torchcrf import CRF
except ImportError:
    CRF = None
LONGEST = {"PER": 3, "LOC": 2, "ORG": 4}  # words of a name
TAGS = ["O", *(f"{prefix}-{kind}" for kind in LONGEST for prefix in "BI")]
TEMPLATES = """PER met PER in LOC. PER of ORG left LOC for LOC. ORG hired PER. ORG and ORG merged in LOC today.
PER and PER visited LOC. the mayor of LOC thanked ORG. in LOC PER wrote to ORG. after LOC ORG welcomed PER"""
JUDGE = sp.SequenceSPL(TAGS, sp.constraints.bio(TAGS))


def sentences(count: int, names: range, drawn: random.Random) -> tuple[list[list[str]], Tensor]:
    """Words, and tags [count, positions]; every word of a name may be part of a person, a place or an organisation."""
    words, tags = ([[] for _ in range(count)] for _ in range(2))
    for row, row_tags in zip(words, tags, strict=True):
        for word in drawn.choice(TEMPLATES.split(".")).split():
            length = drawn.randint(1, LONGEST.get(word, 1))
            row += [f"name{drawn.choice(names)}" for _ in range(length)] if word in LONGEST else [word]
            row_tags += [f"B-{word}", *[f"I-{word}"] * (length - 1)] if word in LONGEST else ["O"]
    return words, JUDGE.indices(tags)[0]


def parts(count: int, drawn: random.Random) -> list[tuple[Tensor, Tensor]]:
    """Words as numbers, and tags, for training and testing; 0 for unknown words and after the end."""
    made = [sentences(count, range(400), drawn), sentences(1000, range(300, 700), drawn)]
    known = {word: i + 1 for i, word in enumerate(sorted({word for row in made[0][0] for word in row}))}
    rows = [[torch.tensor([known.get(word, 0) for word in row]) for row in words] for words, _ in made]
    return [(nn.utils.rnn.pad_sequence(x, batch_first=True), y) for x, (_, y) in zip(rows, made, strict=True)]


class Network(nn.Module):
    """Embeddings, a BiLSTM, and one logit per tag [batch, positions, tags]."""

    def __init__(self, words: int) -> None:
        super().__init__()
        self.embedding, self.lstm = nn.Embedding(words, 16), nn.LSTM(16, 24, batch_first=True, bidirectional=True)
        self.head = nn.Linear(48, len(TAGS))

    def forward(self, x: Tensor) -> Any:
        return self.head(self.lstm(self.embedding(x))[0])


def run(last: Any, train: tuple[Tensor, Tensor], test: tuple[Tensor, Tensor], seed: int, epochs: int) -> list[float]:
    """Share of tags that are right, share of valid sequences, seconds of training and of prediction."""
    torch.manual_seed(seed)
    is_spl, net = isinstance(last, sp.SequenceSPL), Network(int(train[0].max()) + 1)
    optimizer, began = torch.optim.Adam([*net.parameters(), *last.parameters()], 0.01), time.perf_counter()
    for _ in range(epochs):
        for rows in torch.randperm(len(train[0])).split(64):
            x, y = train[0][rows], train[1][rows]
            logits = net(x * (torch.rand(x.shape) < 0.9))  # hide some words, to prepare for unknown ones
            log_prob = last(logits, mask=y >= 0).log_prob(y) if is_spl else last(logits, y.clamp(0), y >= 0, "none")
            optimizer.zero_grad()
            (-log_prob.mean()).backward()
            optimizer.step()
    trained, mask, logits = time.perf_counter(), test[1] >= 0, net(test[0]).detach()
    rows = last(logits, mask=mask).mode if is_spl else [torch.tensor(row) for row in last.decode(logits, mask)]
    decoded = time.perf_counter()
    found = nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=-1)
    right, valid = (found == test[1])[mask], JUDGE(logits, mask=mask).support.check(found)
    return [float(right.double().mean()), float(valid.double().mean()), trained - began, decoded - trained]


def main() -> None:
    """Compare, and print the means over some seeds."""
    parser = argparse.ArgumentParser()
    for name, default in {"rows": 1500, "epochs": 6, "seeds": 3}.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    options = parser.parse_args()
    methods: dict[str, Any] = {} if CRF is None else {"pytorch-crf": lambda: CRF(len(TAGS), batch_first=True)}
    methods["SequenceSPL + BIO"] = lambda: sp.SequenceSPL(TAGS, sp.constraints.bio(TAGS))
    figures: dict[str, Any] = {name: [] for name in methods}
    for seed in range(options.seeds):
        train, test = parts(options.rows, random.Random(seed))
        for name, make in methods.items():
            figures[name].append(run(make(), train, test, seed, options.epochs))
    print(f"{'':18}{'tags right':>11} {'valid':>9} {'training':>11} {'prediction':>11}")
    for name, all_figures in figures.items():
        right, valid, training, prediction = torch.tensor(all_figures).mean(0).tolist()
        print(f"{name:18}{right:11.2%} {valid:9.2%} {training:9.2f} s {prediction:9.2f} s")


if __name__ == "__main__":
    main()
