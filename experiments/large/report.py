"""The page of results, made from the results file."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from typing import Any

_HEAD = """# Large constraints

None of these constraints compiles to one circuit here. [`sp.split`](howto_splitting.md) writes each as many small
circuits, and a layer pools them: every prediction obeys every rule, and the search proves which is the most probable.

A hidden state obeys the rules. The log-odds of each label are +a or -a as the label is 1 or 0, plus noise of standard
deviation 1: *clear* rows have a = 2 (98 % of the single labels are right by their sign), *noisy* ones a = 1 (84 %). The
alternative is what a user would do instead: read the labels independently and let OR-Tools' CP-SAT find the best state
that obeys the rules, one thread, with the same limit per row.

## Splits

| constraint | labels | rules | circuits | edges | rules left out | seconds to split |
|---|---:|---:|---:|---:|---:|---:|
"""
_MODES = """
## Modes

*Proven*: share of rows whose answer is proven to be the most probable state. *Right*: share of rows in which it is the
hidden state. Seconds per row: median / worst. *Gap*: median distance of the certified bounds of the log-probability of
the constraint, in nats.

| constraint | rows | split: proven, % | right, % | seconds | gap | CP-SAT: proven, % | right, % | seconds |
|---|---|---:|---:|---:|---:|---:|---:|---:|
"""


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
    runs = content["runs"]
    commands = "\n".join(sorted({each["provenance"]["command"] for each in runs}))
    limits = sorted({each["limit"] for each in runs})
    rows = sorted({each["rows"] for each in runs})
    return (
        f"{_HEAD}{_splits(runs)}\n{_MODES}{table(content)}\n\n{_finding(runs)}\n\n"
        f"{' or '.join(map(str, rows))} rows each; the limit per row is {' or '.join(f'{each:g}' for each in limits)} "
        "seconds for either; a row that is not proven within it counts with its full time. One thread.\n\n"
        f"```bash\n{commands}\n```\n\nIt resumes, and needs `pip install ortools`. `--cnf FILE` adds cases.\n"
        + (_pictures(content) if content.get("pictures") else "")
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
    return (
        f"{_PICTURES}{boards(content)}\n\nMean ± standard deviation over {seeds} seeds, which draw boards, pictures "
        f"and starting weights. {unproven:.1f} % of the pool's answers are not proven within a second.\n\n"
        f"```bash\n{commands}\n```\n"
    )


def table(content: Mapping[str, Any]) -> str:
    """The rows of the table of modes."""
    lines = []
    for each in content["runs"]:
        pool, solver = each["pool"], each["solver"]
        gap = "–" if pool["gap"] is None else f"{pool['gap']:.1f}"
        cells = [
            each["title"], each["strength"], _percent(pool["proven"]), _percent(pool["right"]), _seconds(pool), gap,
            _percent(solver["proven"]), _percent(solver["right"]), _seconds(solver),
        ]  # fmt: skip
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _splits(runs: list[Mapping[str, Any]]) -> str:
    lines = {
        each["case"]: f"| {each['title']} | {each['labels']:,} | {each['rules']:,} | {each['circuits']} "
        f"| {each['edges']:,} | {each['left_out']} | {each['seconds_to_split']:.1f} |"
        for each in runs
    }
    return "\n".join(lines.values())


def _finding(runs: list[Mapping[str, Any]]) -> str:
    """Where each is ahead, in shares proven and then in median time; and what both found obeys."""
    ahead: list[str] = []
    behind: list[str] = []
    level: list[str] = []
    for each in runs:
        pool, solver = each["pool"], each["solver"]
        name = f"{each['title']} ({each['strength']})"
        mine, other = (pool["proven"], -pool["median"]), (solver["proven"], -solver["median"])
        (ahead if mine > other else behind if mine < other else level).append(name)
    obey = all(each["pool"]["obey"] in (None, 1.0) for each in runs)
    text = f"The split proves more rows, or as many in less time, on {len(ahead)} of {len(runs)}"
    text += f": {'; '.join(ahead)}." if ahead else "."
    if behind:
        text += f" CP-SAT does on {len(behind)}: {'; '.join(behind)}."
    found = min(each["pool"]["found"] for each in runs)
    text += " Every state that a split answered obeys every rule" if obey else " NOT every answer obeys the rules"
    return f"{text}; it answered for {100 * found:.0f} % or more of the rows of each case."


def _spread(shares: list[float]) -> str:
    spread = f" ± {100 * statistics.stdev(shares):.1f}" if len(shares) > 1 else ""
    return f"{100 * statistics.mean(shares):.1f}{spread}"


def _percent(share: float) -> str:
    return f"{100 * share:.0f}"


def _seconds(figures: Mapping[str, float]) -> str:
    return f"{figures['median']:.3f} / {figures['worst']:.2f}"
