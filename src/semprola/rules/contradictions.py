"""All contradictions in a list of rules: sets of rules that have no model, of which each rule is needed."""

from __future__ import annotations

from semprola.errors import CompilationBudgetError
from semprola.rules.questions import Questions
from semprola.rules.solving import new_solver


def contradictions(asked: Questions, most: int) -> tuple[list[list[int]], bool]:
    """The contradictions of some rules, and whether there are no others (MARCO, Liffiton and others 2016).

    A map, which is a set of clauses over the rules, says which sets of rules have not been looked at. One of them is
    taken, as large as possible. If it has no model, it is made smaller until it is a contradiction; all sets that
    contain it are done. If it has one, it is made larger; all sets within it are done.

    Returns:
        The numbers of the rules in each contradiction, the shortest first; and whether these are all.
    """
    found: list[list[int]] = []
    are_all = False
    count = len(asked.everything)
    chart = new_solver(count, (), asked.budget)
    chart.prefer([rule + 1 for rule in asked.everything])
    try:
        while chart.solve():
            asked.budget.check("looking for contradictions")
            if len(found) == most:
                break
            seed = [rule for rule, is_in in enumerate(chart.model().tolist()) if is_in]
            if asked.has_model(seed):
                left_out = _left_out(asked, seed)
                chart.add([rule + 1 for rule in left_out])
            else:
                core = asked.against(seed)
                found.append(core)
                chart.add([-rule - 1 for rule in core])
        else:
            are_all = True
    except CompilationBudgetError:
        pass
    return sorted(found, key=lambda rules: (len(rules), rules)), are_all


def _left_out(asked: Questions, seed: list[int]) -> list[int]:
    """The rules beyond a largest set that contains the seed and has a model; the solver has just found one."""
    inside = set(seed)
    outside = [rule for rule in asked.everything if rule not in inside]
    left: list[int] = []
    while outside:
        # one question takes in all rules that happen to hold
        rule = outside.pop(0)
        if asked.has_model([*inside, rule]):
            model = asked.solver.model()
            holding = [
                other
                for other in [rule, *outside]
                if all(any(model[abs(v) - 1] == (v > 0) for v in clause) for clause in asked.clauses[other])
            ]
            inside.update(holding)
            outside = [other for other in outside if other not in inside]
        else:
            left.append(rule)
    return left
