"""The layer for sequences of tags that obey rules, with learnt transition scores."""

from __future__ import annotations

import hashlib
import itertools
import json
import math
from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from semprola.constraints.tagging import tag_names
from semprola.distributions import Violation
from semprola.distributions.arguments import check_finite, is_hidden, rows_named
from semprola.engine.numbers import NEGATIVE_INFINITY
from semprola.errors import LabelError, UnsatisfiableError
from semprola.nn.showing import Shown
from semprola.sequences.arguments import lengths_of
from semprola.sequences.chains import Chain, Trellis
from semprola.sequences.distribution import SequenceDistribution
from semprola.sequences.machines import TagMachine
from semprola.sequences.results import fault
from semprola.sequences.rules import tag_machine


class SequenceSPL(Shown, nn.Module):
    """A last layer for tagging: a linear-chain CRF whose sequences obey rules.

    p(y) ∝ exp(Σ_t logits[t, y_t] + start[y_0] + Σ_t transitions[y_t-1, y_t] + end[y_last]) if y obeys the rules, and 0
    if it does not. The logits come from any network. Transition scores are shared by all positions, so sequences may
    have any length, even within a batch. Without rules this is a linear-chain CRF.

    Args:
        tags: names of the tags, or their number.
        rules: None; a regular expression over tag names, such as ``"(B-PER I-PER* | O)*"``, that whole sequences must
            match; a DFA or NFA of automata-lib that reads tags; a formula over neighbouring tags that must hold at
            every position; or a list of these, all of which must hold. In a formula, ``"I-PER"`` (or ``"tag=I-PER"``)
            means that the position has this tag; ``"prev=B-PER"`` and ``"next=O"`` refer to its neighbours (false if
            there is none); ``first`` and ``last`` hold at the ends. A count of tags, such as ``sp.at_most(2,
            ["B-PER"])``, is over the whole sequence. A regular expression can also have ``&`` (which binds more
            tightly than ``|``) and ``!( … )``: ``"!(.* B-LOC .* B-PER .*)"`` allows no B-PER after a B-LOC.
        transitions: whether to learn scores of neighbouring, first and last tags. Without them, only the logits and the
            rules matter.
        device: where the parameters live.
        dtype: type of the parameters.

    Attributes:
        transitions: scores of neighbouring tags [tags before, tags], or None.
        start: scores of the first tag [tags], or None.
        end: scores of the last tag [tags], or None.

    Raises:
        LabelError: if tags are invalid, or the rules name a tag that does not exist.
        ParseError: if a pattern is not a regular expression.
        UnsatisfiableError: if no sequence obeys the rules.

    Example:
        >>> import torch, semprola as sp
        >>> layer = sp.SequenceSPL(["O", "B", "I"], rules=sp.parse('I -> "prev=B" | "prev=I"'))
        >>> p = layer(torch.randn(5, 8, 3), lengths=[8, 3, 5, 1, 8])
        >>> loss = -p.log_prob(torch.zeros(5, 8, dtype=torch.long)).mean()
        >>> p.mode.shape, p.marginals.shape
        (torch.Size([5, 8]), torch.Size([5, 8, 3]))
    """

    _others = "other tags or rules: build the layer with the same ones"
    start: Tensor | None
    transitions: Tensor | None
    end: Tensor | None

    def __init__(
        self,
        tags: int | Iterable[str],
        rules: Any = None,
        transitions: bool = True,
        *,
        device: Any = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        if not isinstance(transitions, bool):
            raise TypeError(f"transitions must be True or False, not {transitions!r:.40}")
        self.tags = tag_names(tags)
        self.machine: TagMachine = tag_machine(rules, self.tags)
        self.chain = Chain(self.machine.table, self.machine.accepting)
        if not transitions and not self.chain.simple:  # fewer nodes suffice
            self.chain = Chain(self.machine.table, self.machine.accepting, with_tags=False)
        count = len(self.tags)
        for name, shape in {"start": (count,), "transitions": (count, count), "end": (count,)}.items():
            made = nn.Parameter(torch.zeros(shape, device=device, dtype=dtype)) if transitions else None
            self.register_parameter(name, made)

    @property
    def is_learnt(self) -> bool:
        """Whether scores of neighbouring tags are learnt."""
        return self.transitions is not None

    def forward(self, logits: Tensor, lengths: Any = None, mask: Any = None) -> SequenceDistribution:
        """The distribution over sequences of tags.

        Args:
            logits: scores of the tags at each position [*batch, positions, tags], from any network. Those after the end
                of a sequence are ignored.
            lengths: lengths of the sequences [*batch], at least 1; by default all are as long as the logits.
            mask: true up to the end of a sequence and false after it [*batch, positions]; an alternative to `lengths`.

        Raises:
            ValueError: if logits are NaN or infinite, or lengths or mask do not fit; the message names the rows.
            UnsatisfiableError: if no sequence of such a length obeys the rules; the message names the rows.
        """
        batch_shape, positions = self._shape_of(logits)
        ends = lengths_of(lengths, mask, batch_shape, positions, logits.device)
        self._check_lengths(ends, batch_shape, positions)
        batch = math.prod(batch_shape)
        active = None
        if ends is not None:
            ends = ends.reshape(batch)
            active = torch.arange(positions, device=logits.device)[:, None] < ends
            logits = logits.masked_fill(~active.T.reshape(*batch_shape, positions, 1), 0.0)
        check_finite(logits, batch_shape, "logits")
        scores, final = self._scores(logits)
        emissions = logits.to(scores.dtype).reshape(batch, positions, len(self.tags)).permute(1, 2, 0).contiguous()
        # shift the best tag of each position to 0, so that long sequences keep the precision of short ones
        top = emissions.detach().amax(1)
        trellis = Trellis(self.chain.on(logits.device), emissions - top[:, None], scores, final, active, ends)
        return SequenceDistribution(trellis, batch_shape, self.tags, top.sum(0))

    def indices(self, sequences: Sequence[Sequence[str]]) -> tuple[Tensor, Tensor]:
        """Sequences of tag names as integers [rows, positions], -1 after their ends, and their lengths [rows].

        Raises:
            LabelError: if a name is not a tag; the message names the row.

        Example:
            >>> import semprola as sp
            >>> sp.SequenceSPL(["O", "B"]).indices([["O", "B"], ["B"]])
            (tensor([[ 0,  1],
                    [ 1, -1]]), tensor([2, 1]))
        """
        number = {tag: i for i, tag in enumerate(self.tags)}
        longest = max((len(row) for row in sequences), default=0)
        y = torch.full((len(sequences), longest), -1)
        for i, row in enumerate(sequences):
            unknown = next((tag for tag in row if tag not in number), None)
            if unknown is not None:
                raise LabelError(f"row {i} has {unknown!r:.40}, which is not a tag: the tags are {self._listed()}")
            y[i, : len(row)] = torch.tensor([number[tag] for tag in row], dtype=torch.int64)
        return y, torch.tensor([len(row) for row in sequences], dtype=torch.int64)

    def violations(self, y: Any) -> list[Violation]:
        """The sequences that break the rules, each with the first tag at fault; also ``sp.violations(layer, y)``.

        Args:
            y: tags [*batch, positions], -1 after the end of a sequence.

        Raises:
            ValueError: if a number is not a tag; the message names it.

        Example:
            >>> import semprola as sp
            >>> layer = sp.SequenceSPL(["O", "B"], [sp.at_most(1, ["B"])])
            >>> print(*layer.violations(layer.indices([["O", "B"], ["B", "O", "B"]])[0]))
            row 1: 'B' at position 2, after 'O'
        """
        rows = torch.as_tensor(y)
        if rows.dim() == 0 or rows.is_floating_point() or bool(((rows < -1) | (rows >= len(self.tags))).any()):
            raise ValueError(f"expected tags [*batch, positions] from 0 to {len(self.tags) - 1}, -1 after the end")
        found = []
        for place in itertools.product(*(range(size) for size in rows.shape[:-1])):
            padded = rows[place].tolist()
            tags = padded[: padded.index(-1) if -1 in padded else None]
            if set(padded[len(tags) :]) - {-1}:
                raise ValueError(f"row {place[0] if len(place) == 1 else place}: a tag after -1, which marks the end")
            position = self.machine.fault(tags) if tags else 0
            if position is not None:
                row = place[0] if len(place) == 1 else place
                found.append(Violation(row, fault(self.tags, tags, position), {}))
        return found

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """Set all scores to 0, so that no tag is preferred."""
        for parameter in self.parameters():
            parameter.zero_()

    def _digest(self) -> str:
        return hashlib.sha256(json.dumps([self.tags, self.machine.digest, self.is_learnt]).encode()).hexdigest()

    def extra_repr(self) -> str:
        """What `repr` shows."""
        learnt = "" if self.is_learnt else ", transitions=False"
        return f"{len(self.tags)} tags, {self.machine.num_states} states{learnt}"

    def _scores(self, logits: Tensor) -> tuple[Tensor, Tensor]:
        """Scores of steps and of ends, in the type to compute with; copies, which an optimiser does not change."""
        dtype = torch.float32 if logits.dtype in (torch.float16, torch.bfloat16) else logits.dtype
        chain, count = self.chain.on(logits.device), len(self.tags)
        if self.transitions is None or self.start is None or self.end is None:
            zeros = torch.zeros((chain.num_nodes + 1, count), dtype=dtype, device=logits.device)
            final = zeros[:-1, 0].masked_fill(chain.not_final, NEGATIVE_INFINITY)
            return zeros.masked_fill(chain.forbidden, NEGATIVE_INFINITY), final
        dtype = torch.promote_types(dtype, self.transitions.dtype)
        start, transitions, end = (each.to(dtype) for each in (self.start, self.transitions, self.end))
        return chain.step_scores(transitions, start), chain.final_scores(end)

    def _shape_of(self, logits: Any) -> tuple[torch.Size, int]:
        count = len(self.tags)
        if not isinstance(logits, Tensor):
            raise TypeError(f"logits must be a tensor [*batch, positions, {count}], not {type(logits).__name__}")
        if not logits.is_floating_point():
            raise TypeError(f"logits must be floating point, not {logits.dtype}")
        if logits.dim() < 2 or logits.shape[-1] != count:
            raise LabelError(
                f"logits must be [*batch, positions, {count}], one column for each of {self._listed()}; "
                f"not {tuple(logits.shape)}"
            )
        if logits.shape[-2] == 0:
            raise ValueError("logits have no positions: sequences need at least one tag")
        return logits.shape[:-2], int(logits.shape[-2])

    def _check_lengths(self, ends: Tensor | None, batch_shape: torch.Size, positions: int) -> None:
        """Refuse lengths for which no sequence obeys the rules."""
        if self.chain.is_free:
            return
        possible = self.chain.possible_lengths(positions)[: positions + 1]
        if ends is None:
            if not possible[positions]:
                raise UnsatisfiableError(f"no sequence of {positions} tags obeys the rules")
        elif not all(possible[1:]) and not is_hidden(ends):
            wrong = ~torch.tensor(possible)[ends.cpu()]
            if bool(wrong.any()):
                first = int(ends.cpu()[wrong][0]) if batch_shape else int(ends)
                where = rows_named(wrong.reshape(-1), batch_shape)
                raise UnsatisfiableError(f"no sequence of {first} tags obeys the rules{where}")

    def _listed(self) -> str:
        return ", ".join(self.tags[:4]) + (", …" if len(self.tags) > 4 else "")
