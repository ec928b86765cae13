"""The nodes that a sequence of tags passes through: states of an automaton, each with the tag that was read last."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from semprola.engine.numbers import NEGATIVE_INFINITY


class Chain:
    """The nodes that a sequence can be in, and the node after each tag.

    A node is a state of the automaton together with the tag read last, so that scores of neighbouring tags are scores
    of one step. The last node is the start, before the first tag.

    Args:
        table: the automaton's state after each tag, -1 if the sequence is rejected [states, tags]; it starts in 0.
        accepting: whether a sequence may end in a state [states].
        with_tags: whether nodes tell tags apart. Without transition scores they need not.

    Attributes:
        last_tags: the tag of each node, `num_tags` for the start [nodes + 1].
        targets: the node after each tag, 0 where none is allowed [nodes + 1, tags].
        allowed: whether a tag is allowed [nodes + 1, tags].
        final: whether a sequence may end in a node [nodes].
        simple: whether there is one node per tag; then node i is the node of tag i.
        is_free: whether everything is allowed.
        mixes: whether, after some number of steps, every node can be reached from every other.
    """

    def __init__(self, table: Any, accepting: Any, with_tags: bool = True) -> None:
        rows, ends = np.asarray(table), np.asarray(accepting)
        self.num_tags = tags = int(rows.shape[1])
        pairs = _reached(rows, with_tags)
        one_each = with_tags and len({tag for _, tag in pairs}) == len(pairs)
        if one_each:
            state_of = {tag: state for state, tag in pairs}
            # a tag that no sequence reaches keeps its place, so that nodes and tags have the same numbers
            pairs = [(state_of.get(tag, -1), tag) for tag in range(tags)]
        number = {pair: i for i, pair in enumerate(pairs)}
        targets = np.full((len(pairs) + 1, tags), -1)
        for i, (state, _) in enumerate([*pairs, (0, tags)]):
            for tag in range(tags) if state >= 0 else ():
                after = int(rows[state, tag])
                targets[i, tag] = number[after, tag if with_tags else 0] if after >= 0 else -1
        self._steps, self._ends = targets, np.array([state >= 0 and ends[state] for state, _ in pairs], bool)
        self.allowed = torch.from_numpy(targets >= 0)
        self.targets = torch.from_numpy(np.maximum(targets, 0))
        self.final = torch.from_numpy(self._ends.copy())
        self.last_tags = torch.tensor([tag for _, tag in pairs] + [tags])
        self.simple = one_each
        self.is_free = bool(self.allowed.all()) and bool(self.final.all())
        self.forbidden, self.not_final = ~self.allowed, ~self.final
        self.mixes = self.simple and _mixes(self.allowed[:-1].numpy())
        self._elsewhere: dict[torch.device, Chain] = {}
        self._lengths = [False]
        self._nodes: Tensor | None = None

    @property
    def num_nodes(self) -> int:
        """Number of nodes, not counting the start."""
        return len(self.final)

    def on(self, device: torch.device) -> Chain:
        """The same chain with its tensors on a device."""
        if self.final.device == device:
            return self
        found = self._elsewhere.get(device)
        if found is None:
            found = copy(self)
            found._elsewhere, found._nodes = {}, None
            for name in ("allowed", "forbidden", "targets", "final", "not_final", "last_tags"):
                setattr(found, name, getattr(self, name).to(device))
            self._elsewhere[device] = found
        return found

    def times(self, table: Any, accepting: Any) -> tuple[Chain, Tensor]:
        """The chain of the sequences that another automaton accepts too.

        Returns:
            The chain, and the node of this chain for each of its nodes, the start last [nodes + 1].
        """
        rows, ends = np.asarray(table), np.asarray(accepting)
        start = (len(self._steps) - 1, 0)
        number, queue = {start: 0}, [start]
        steps = []
        for node, state in queue:
            row = []
            for tag in range(self.num_tags):
                after = int(self._steps[node, tag]), int(rows[state, tag])
                if min(after) >= 0 and after not in number:
                    number[after] = len(number)
                    queue.append(after)
                row.append(number[after] if min(after) >= 0 else -1)
            steps.append(row)
        final = [node < len(self._ends) and bool(self._ends[node] and ends[state]) for node, state in queue]
        chain = Chain(steps, final, with_tags=False).on(self.final.device)
        return chain, torch.tensor([node for node, _ in queue[1:] + queue[:1]], device=self.final.device)

    def possible_lengths(self, most: int) -> list[bool]:
        """For each length up to `most`, whether some sequence of that length obeys the rules; computed once."""
        if len(self._lengths) <= most:
            # in numpy, because a tracer would make tensor operations part of its program
            nodes = np.array([len(self._steps) - 1])
            lengths = [False]
            for _ in range(most):
                nodes = np.unique(self._steps[nodes])
                nodes = nodes[nodes >= 0]
                lengths.append(bool(self._ends[nodes].any()))
            self._lengths = lengths
        return self._lengths

    def possible_nodes(self, positions: int) -> Tensor:
        """Whether a node can be reached by 1, 2, … tags, and whether 0, 1, … more tags can end a sequence.

        Returns:
            bools [positions, 2, nodes]
        """
        if self._nodes is None or len(self._nodes) < positions:
            steps = self.allowed[:-1]
            reached, ending = self.allowed[-1], self.final
            found = []
            for _ in range(positions):
                found.append(torch.stack([reached, ending]))
                reached, ending = (steps & reached[:, None]).any(0), (steps & ending).any(1)
            self._nodes = torch.stack(found)
        return self._nodes[:positions]

    def step_scores(self, transitions: Tensor, start: Tensor) -> Tensor:
        """Scores of the steps [nodes + 1, tags] from scores of neighbouring tags [tags, tags] and first tags [tags]."""
        by_tag = torch.cat([transitions, start[None]])
        scores = by_tag if self.simple else by_tag.index_select(0, self.last_tags)
        return scores if self.is_free else scores.masked_fill(self.forbidden, NEGATIVE_INFINITY)

    def final_scores(self, end: Tensor) -> Tensor:
        """Scores of ending in a node [nodes], from scores of last tags [tags]."""
        scores = end if self.simple else end.index_select(0, self.last_tags[:-1])
        return scores.clone() if self.is_free else scores.masked_fill(self.not_final, NEGATIVE_INFINITY)

    def follow(self, y: Tensor) -> Tensor:
        """The node before each tag of y [positions, …], and the one after the last [positions + 1, …].

        After a tag that is not allowed, the nodes mean nothing.
        """
        start = y.new_full((1, *y.shape[1:]), self.num_nodes)
        if self.simple:
            return torch.cat([start, y])
        passed = [start[0]]
        for tag in y:
            passed.append(self.targets[passed[-1], tag])
        return torch.stack(passed)


@dataclass(frozen=True)
class Trellis:
    """A chain with its scores, over a flat batch of sequences.

    Attributes:
        chain: the nodes, on the device of the scores.
        emissions: scores of the tags [positions, tags, batch].
        scores: of the steps [nodes + 1, tags], the last row for the first step; -inf where not allowed.
        final: of ending in a node [nodes]; -inf where not allowed.
        active: whether a position is within its sequence [positions, batch]; None if all are.
        lengths: of the sequences [batch]; None if all have the full length.
        is_masked: whether emissions may be -inf.
    """

    chain: Chain
    emissions: Tensor
    scores: Tensor
    final: Tensor
    active: Tensor | None = None
    lengths: Tensor | None = None
    is_masked: bool = False

    @property
    def positions(self) -> int:
        """Number of positions of the longest sequence."""
        return int(self.emissions.shape[0])

    @property
    def batch(self) -> int:
        """Number of sequences in the batch."""
        return self.emissions.shape[2]  # not int(): exporters keep it symbolic

    def last(self) -> Tensor:
        """The scores of ending [nodes, batch]."""
        return self.final[:, None].expand(-1, self.batch)

    def steps(self, position: int, after: Tensor) -> Tensor:
        """Scores of the steps from each node at a position other than the first [nodes, tags, batch].

        Args:
            after: scores of the continuations of each node after the step [nodes, batch].
        """
        return self.scores[:-1, :, None] + self.reading(position, after)

    def first_steps(self, after: Tensor) -> Tensor:
        """Scores of the first step [tags, batch]."""
        if self.chain.simple:
            return self.scores[-1, :, None] + self.reading(0, after)
        return self.scores[-1, :, None] + self.emissions[0] + after.index_select(0, self.chain.targets[-1])

    def reading(self, position: int, after: Tensor) -> Tensor:
        """Scores of reading a tag and continuing [nodes, tags, batch]; [tags, batch] if nodes are tags."""
        if self.chain.simple:
            return self.emissions[position] + after
        targets = self.chain.targets[:-1]
        following: Tensor = after.index_select(0, targets.reshape(-1)).unflatten(0, targets.shape)
        return self.emissions[position] + following

    def held(self, position: int, values: Tensor) -> Tensor:
        """Values of nodes before a position [nodes, batch]; where the sequence has ended, the scores of ending."""
        return values if self.active is None else torch.where(self.active[position], values, self.final[:, None])

    def passed(self, y: Tensor) -> tuple[Tensor, Tensor]:
        """The steps that tags y [positions, samples, batch] take, as flat indices of `scores`, and the last nodes."""
        nodes = self.chain.follow(y)
        steps = torch.add(y, nodes[:-1], alpha=self.chain.num_tags).reshape(-1)
        if self.lengths is None:
            return steps, nodes[-1].reshape(-1)
        return steps, nodes.gather(0, self.lengths.expand(1, y.shape[1], -1)).reshape(-1)

    def scores_of(self, y: Tensor, steps: Tensor, last: Tensor) -> Tensor:
        """Total scores of tag sequences [samples, batch], -inf where they break the rules; see `passed`."""
        each = self.scores.reshape(-1).index_select(0, steps).reshape(y.shape) + self.emissions.gather(1, y)
        if self.active is not None:
            each = each.masked_fill(~self.active[:, None], 0.0)
        return each.sum(0) + self.final.index_select(0, last).reshape(y.shape[1:])

    def select(self, index: Tensor) -> Trellis:
        """The trellis of some sequences of the batch."""
        active = None if self.active is None else self.active[:, index]
        lengths = None if self.lengths is None else self.lengths[index]
        return replace(self, emissions=self.emissions[:, :, index], active=active, lengths=lengths)

    def obeying(self, table: Any, accepting: Any) -> Trellis:
        """The trellis of the sequences that another automaton accepts too; see :class:`Chain`."""
        chain, origin = self.chain.times(table, accepting)
        scores = self.scores[origin].masked_fill(chain.forbidden, NEGATIVE_INFINITY)
        final = self.final[origin[:-1]].masked_fill(chain.not_final, NEGATIVE_INFINITY)
        return replace(self, chain=chain, scores=scores, final=final, is_masked=True)

    def within(self, allowed: Tensor) -> Trellis:
        """The trellis with only some tags allowed at each position: bool [positions, tags, batch]."""
        emissions = self.emissions.masked_fill(~allowed, NEGATIVE_INFINITY)
        return replace(self, emissions=emissions, is_masked=True)


def _mixes(allowed: Any) -> bool:
    """Whether some power of the matrix of steps [nodes, nodes] has no zero."""
    reached = allowed
    for _ in range(max(1, len(allowed).bit_length() * 2)):  # squaring: any power above (nodes - 1)² decides
        if reached.all():
            return True
        reached = (reached.astype(np.float32) @ reached.astype(np.float32)) > 0
    return bool(reached.all())


def _reached(rows: Any, with_tags: bool) -> list[tuple[int, int]]:
    """The states that one or more tags lead to, each with the last tag (or 0), sorted by tag."""
    found: set[tuple[int, int]] = set()
    waiting = [0]
    seen = {0}
    while waiting:
        state = waiting.pop()
        for tag, after in enumerate(rows[state].tolist()):
            if after >= 0:
                found.add((after, tag if with_tags else 0))
                if after not in seen:
                    seen.add(after)
                    waiting.append(after)
    return sorted(found, key=lambda pair: (pair[1], pair[0]))
