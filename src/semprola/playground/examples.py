"""The examples on the page: problems with beliefs for which independent predictions break the rules."""

from __future__ import annotations

from typing import Any

_HIERARCHY = """\
cat -> animal
dog -> animal
~(cat & dog)
kitten -> cat"""

_ROSTER = """\
# Every shift has one person; nobody works more than two shifts.
one_hot(ana.mon, ben.mon, cho.mon)
one_hot(ana.tue, ben.tue, cho.tue)
one_hot(ana.wed, ben.wed, cho.wed)
one_hot(ana.thu, ben.thu, cho.thu)
at_most(2, ana.mon, ana.tue, ana.wed, ana.thu)
at_most(2, ben.mon, ben.tue, ben.wed, ben.thu)
at_most(2, cho.mon, cho.tue, cho.wed, cho.thu)
# Ben never works two days in a row; Ana is away on Tuesday.
~(ben.mon & ben.tue) & ~(ben.tue & ben.wed) & ~(ben.wed & ben.thu)
~ana.tue"""


_TICKETS = """\
# What a ticket is about, written by three people.
kinds: exactly(1, bug, question, billing)
crash -> bug
refund -> billing
refund -> billing | question
crash -> urgent
outage -> crash
outage -> urgent
quiet: billing -> ~urgent
desk: on_call | backup
holidays: ~backup"""

_SEEN_TICKETS = """\
bug,question,billing,crash,refund,outage,urgent,on_call,backup
1,0,0,1,0,0,1,1,0
1,0,0,1,0,0,0,1,0
0,1,0,0,0,0,0,1,0
0,0,1,0,1,0,1,1,0
1,1,0,0,0,0,0,1,0
,,,1,0,0,,1,
0,1,0,0,1,0,0,1,0
"""


def examples() -> list[dict[str, Any]]:
    """All examples: name, title, problem, beliefs and evidence by label; `other` is the belief of the other labels,
    `rows` a table."""
    return [
        {
            "name": "hierarchy",
            "title": "Hierarchy",
            "problem": {"structure": "none", "size": 0, "text": _HIERARCHY},
            "beliefs": {"cat": 0.72, "dog": 0.55, "animal": 0.4, "kitten": 0.35},
            "evidence": {},
        },
        {
            "name": "path",
            "title": "Path on a grid",
            "problem": {"structure": "grid", "size": 4, "text": ""},
            "beliefs": dict.fromkeys(("a1:b1", "b1:c1", "c1:c2", "c2:c3", "c3:d3", "d3:d4"), 0.85)
            | {"c2:c3": 0.35, "a1:a2": 0.6, "b3:b4": 0.7},
            "other": 0.2,
            "evidence": {},
        },
        {
            "name": "ranking",
            "title": "Ranking",
            "problem": {"structure": "ranking", "size": 4, "text": "soup.1 | soup.2\n~(fish.1 & cake.2)"},
            "beliefs": {
                "cake.1": 0.7,
                "cake.2": 0.3,
                "soup.1": 0.65,
                "soup.3": 0.4,
                "fish.1": 0.2,
                "fish.2": 0.6,
                "fish.3": 0.55,
                "rice.3": 0.45,
                "rice.4": 0.6,
            },
            "other": 0.1,
            "evidence": {},
        },
        {
            "name": "sudoku",
            "title": "Sudoku 4 × 4",
            "problem": {"structure": "sudoku", "size": 4, "text": ""},
            "beliefs": {
                "r1c1.1": 0.9,
                "r1c2.2": 0.8,
                "r1c4.4": 0.7,
                "r2c1.3": 0.85,
                "r2c3.1": 0.75,
                "r3c2.1": 0.8,
                "r3c3.4": 0.9,
                "r3c4.4": 0.6,
                "r4c1.4": 0.7,
                "r4c4.1": 0.8,
            },
            "other": 0.25,
            "evidence": {"r1c1.1": 1},
        },
        {
            "name": "roster",
            "title": "Roster",
            "problem": {"structure": "none", "size": 0, "text": _ROSTER},
            "beliefs": {
                "ana.mon": 0.8,
                "ana.tue": 0.7,
                "ana.wed": 0.75,
                "ana.thu": 0.3,
                "ben.mon": 0.3,
                "ben.tue": 0.6,
                "ben.wed": 0.35,
                "ben.thu": 0.7,
                "cho.mon": 0.15,
                "cho.tue": 0.45,
                "cho.wed": 0.2,
                "cho.thu": 0.6,
            },
            "evidence": {},
        },
        {
            "name": "messy",
            "title": "Messy rules",
            "problem": {"structure": "none", "size": 0, "text": _TICKETS},
            "beliefs": {"bug": 0.7, "crash": 0.6, "urgent": 0.3, "billing": 0.55},
            "evidence": {},
            "rows": _SEEN_TICKETS,
        },
    ]
