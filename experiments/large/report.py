"""The page of results, made from the results file."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from typing import Any

from experiments.large import wall
from experiments.large.cases import CASES

_HEAD = """# Large constraints

No circuit of one of these constraints is of a size that a layer could use, or none was found at all.
[`sp.split`](howto_splitting.md) writes each as many small circuits, and a layer pools them: every prediction obeys
every rule, and the search proves which state is the most probable.

A hidden state obeys the rules. The log-odds of each label are +a or -a as the label is 1 or 0, plus noise of standard
deviation 1: *clear* rows have a = 2 (98 % of the single labels are right by their sign), *noisy* ones a = 1 (84 %). The
alternative is what a user would do instead: read the labels independently and let OR-Tools' CP-SAT find the best state
that obeys the rules, with one thread. Each way has the same limit per row, in processor time, because the machine was
shared. DeepLog and Scallop, which fall back to a few proofs or to samples, could not be installed: PyPI has no
Scallop, and another program under the name of DeepLog.

## Splits

| constraint | labels | rules | circuits | edges | rules left out | seconds to split |
|---|---:|---:|---:|---:|---:|---:|
"""
_AFTER_SPLITS = """
Rules that are left out are obeyed, too, but only by the search. All but the CNFs of the competition end in a
`CompilationBudgetError`. The seconds to split are of the clock, with other work on the machine.
"""
_TOUR = """
The tour is stated with its edges: two at every city, and at least one out of every set of cities. CP-SAT
has a constraint of its own for tours instead.
"""
_COMPETITION = """
Of the CNFs of the model-counting competition 2022, `mc2022_track1_002` is the only one of 33 that
does not compile within 60 s; circuits of the other three have 15 to 51 million edges
([how they compile](compile.md#competition)). Their weights are not used here.
"""
_MODES = """
## Modes

*Proven*: share of rows whose answer is proven to be the most probable state. *Right*: share of rows in which it is
the hidden state. *s*: seconds per row, median / worst. *Gap*: median distance of the certified bounds of the
log-probability of the constraint, in nats. *Both* is `p.within(solver="cp-sat")`: CP-SAT goes on, after half the
time, where the split has not proven its answer; rows that the split proves alone count as they are.

| constraint | rows | split: proven, % | right, % | s | gap | CP-SAT: proven | right | s | both: proven | right |
|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|
"""


_AND = "\n- "

_PICTURES = """
## Sudokus from pictures

81 noisy pictures of handwritten digits (MNIST, Gaussian noise of standard deviation 1 on pixels from 0 to 1) show a
solved sudoku. LeNet reads them, trained on a few boards, either cell by cell (cross-entropy) or board by board (the
lower bound of the pool's likelihood, `p.log_score`). 100 unseen boards with unseen pictures are read, within a second
each. *Repaired* is the best state of the cell-by-cell network that obeys the rules, found by CP-SAT; *rules added* is
the pool's mode with the same network, without further training.

| training boards | cells right, % | boards right, % | repaired | rules added | trained with rules | all are sudokus |
|---:|---:|---:|---:|---:|---:|---|
"""


def page(content: Mapping[str, Any]) -> str:
    """The page for a results file."""
    order = list(CASES)
    runs = sorted(content["runs"], key=lambda run: order.index(run["case"]) if run["case"] in order else len(order))
    commands = "\n".join(sorted({each["provenance"]["command"] for each in runs}))
    limits = sorted({each["limit"] for each in runs})
    rows = sorted({each["rows"] for each in runs})
    return (
        f"{_HEAD}{_splits(runs)}\n{_AFTER_SPLITS}{_about(runs)}{_MODES}{table({'runs': runs})}\n\n{_finding(runs)}\n\n"
        f"{' or '.join(map(str, rows))} rows each; the limit per row is {' or '.join(f'{each:g}' for each in limits)} "
        "s of processor time for each way; a row that is not proven within it counts with its full time.\n\n"
        f"```bash\n{commands}\n```\n\n"
        "It resumes, and needs `pip install 'semprola[solver]'`. `--cnf FILE` adds cases.\n"
        + (_pictures(content) if content.get("pictures") else "")
        + (wall.section(content["wall"]) if content.get("wall") else "")
    )


def boards(content: Mapping[str, Any]) -> str:
    """The rows of the table of sudokus from pictures."""
    runs = content["pictures"]
    lines = []
    for count in sorted({each["boards"] for each in runs}):
        found = [each for each in runs if each["boards"] == count]
        figures = [
            _spread([each[name] for each in found])
            for name in ("cells", "independent", "repaired", "rules_added", "trained")
        ]
        lines.append(f"| {count} | {' | '.join(figures)} | {'yes' if all(e['obey'] for e in found) else 'NO'} |")
    return "\n".join(lines)


def _pictures(content: Mapping[str, Any]) -> str:
    runs = content["pictures"]
    commands = "\n".join(sorted({each["provenance"]["command"] for each in runs}))
    seeds = len({each["seed"] for each in runs})
    unproven = 100 * (1 - statistics.mean(each["proven"] for each in runs))
    drawn = f"Mean ± standard deviation over {seeds} seeds, which draw" if seeds > 1 else "One seed, which draws"
    return (
        f"{_PICTURES}{boards(content)}\n\n{drawn} boards, pictures and starting weights. "
        f"{unproven:.1f} % of the pool's answers are not proven within a second.\n\n"
        f"```bash\n{commands}\n```\n"
    )


def table(content: Mapping[str, Any]) -> str:
    """The rows of the table of modes."""
    lines = []
    for each in content["runs"]:
        pool, solver, both = each["pool"], each["solver"], each["both"]
        gap = "–" if pool["gap"] is None else f"{pool['gap']:.1f}"
        cells = [
            each["title"], each["strength"], _percent(pool["proven"]), _percent(pool["right"]), _seconds(pool), gap,
            _percent(solver["proven"]), _percent(solver["right"]), _seconds(solver),
            _percent(both["proven"]), _percent(both["right"]),
        ]  # fmt: skip
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _splits(runs: list[Mapping[str, Any]]) -> str:
    lines = {
        each["case"]: f"| {each['title']} | {each['labels']:,} | {each['rules']:,} | {each['circuits']} "
        f"| {each['edges']:,} | {each['left_out']:,} | {each['seconds_to_split']:.1f} |"
        for each in runs
    }
    return "\n".join(lines.values())


def _about(runs: list[Mapping[str, Any]]) -> str:
    """Notes on those cases that were run."""
    cases = {each["case"] for each in runs}
    return (_TOUR if "tour" in cases else "") + (_COMPETITION if any(c.startswith("mc20") for c in cases) else "")


def _finding(runs: list[Mapping[str, Any]]) -> str:
    """Where each proves more rows, or as many in less time; and what the answers obey."""
    ahead: list[str] = []
    behind: list[str] = []
    for each in runs:
        mine, other = ((each[way]["proven"], -each[way]["median"]) for way in ("pool", "solver"))
        if mine != other:
            (ahead if mine > other else behind).append(f"{each['title']} ({each['strength']})")
    text = f"The split alone proves more rows than CP-SAT, or as many in less time, on {len(ahead)} of {len(runs)}"
    text += f":\n\n- {_AND.join(ahead)}\n\n" if ahead else ".\n\n"
    if behind:
        text += f"CP-SAT does on {len(behind)}:\n\n- {_AND.join(behind)}\n\n"
    best = [max(each["pool"]["proven"], each["solver"]["proven"]) for each in runs]
    level = sum(each["both"]["proven"] >= most for each, most in zip(runs, best, strict=True))
    text += f"Both together prove as many rows as the better one, or more, on {level} of {len(runs)}."
    obey = all(each[way]["obey"] for each in runs for way in ("pool", "both"))
    text += " Every state that a split answered obeys every rule." if obey else " NOT every answer obeys the rules."
    found = {way: min(each[way]["found"] for each in runs) for way in ("pool", "both")}
    if found["pool"] == found["both"] == 1:
        return f"{text} Every row has an answer."
    return (
        f"{text} The split alone answered for {100 * found['pool']:.0f} % or more of the rows of each case, both for "
        f"{100 * found['both']:.0f} %; for the others, it names the row in an error."
    )


def _spread(shares: list[float]) -> str:
    spread = f" ± {100 * statistics.stdev(shares):.1f}" if len(shares) > 1 else ""
    return f"{100 * statistics.mean(shares):.1f}{spread}"


def _percent(share: float) -> str:
    return f"{100 * share:.0f}"


def _seconds(figures: Mapping[str, float]) -> str:
    return f"{figures['median']:.3f} / {figures['worst']:.2f}"
