"""Grounds a ProbLog program with the `problog` package and writes it as plain data.

It runs as a script in a process of its own, since a program without a finite grounding would run forever: it imports
nothing of this package, reads the program from standard input, and writes JSON.
"""

from __future__ import annotations

import json
import sys
from typing import Any

_MEMORY = 4 << 30


def grounded(text: str) -> dict[str, Any]:
    """The ground program without cycles.

    Returns:
        "groups": for each independent choice its name, values, probabilities (None if a network gives them), network
        and inputs; "nodes": ["choice", group, value], ["and", children] or ["or", children] by number, where a negative
        child is negated, 0 is true and None is false; "queries" and "evidence": pairs of a text and a node.
    """
    from problog.formula import LogicDAG
    from problog.program import PrologString, SimpleProgram

    program = SimpleProgram()
    for statement in PrologString(text):
        program.add_clause(_without_networks(statement))
    dag = LogicDAG.create_from(program)
    groups: dict[str, dict[str, Any]] = {}
    nodes: dict[int, list[Any]] = {}
    for number, node, kind in dag:
        if kind == "atom":
            nodes[number] = _choice(node, groups)
        else:
            nodes[number] = ["and" if kind == "conj" else "or", list(node.children)]
    return {
        "groups": groups,
        "nodes": nodes,
        "queries": [(str(name), node) for name, node in dag.queries()],
        "evidence": [(str(name), node) for name, node in dag.evidence()],
    }


def _without_networks(statement: Any) -> Any:
    """A neural predicate as an annotated disjunction, whose probabilities are terms that name the network."""
    from problog.logic import AnnotatedDisjunction, Clause, Constant, Term, term2list

    is_clause = isinstance(statement, Clause)
    head = statement.head if is_clause else statement
    nn: Any = getattr(head, "probability", None)
    if getattr(nn, "functor", None) != "nn" or isinstance(statement, AnnotatedDisjunction):
        return statement
    if nn.arity == 2:
        return statement
    if nn.arity != 4 or not nn.args[2].is_var():
        raise ValueError(
            f"a neural predicate is nn(name, [X], Y, [0, 1]) :: p(X, Y) or nn(name, [X]) :: p(X), not {nn}"
        )
    network, inputs, output, domain = nn.args
    heads = []
    for listed in term2list(domain):
        value = listed if isinstance(listed, Term) else Constant(listed)
        args = [value if str(arg) == str(output) else arg for arg in head.args]
        heads.append(Term(head.functor, *args, p=Term("nn", network, inputs, value, domain)))
    return AnnotatedDisjunction(heads, statement.body if is_clause else Term("true"))


def _choice(node: Any, groups: dict[str, dict[str, Any]]) -> list[Any]:
    """The node of a probabilistic fact, or of one alternative of an annotated disjunction."""
    from problog.logic import term2list

    probability = node.probability
    value = _value(node)
    if getattr(probability, "functor", None) == "nn":
        network, inputs, *rest = probability.args
        read = [str(each) for each in term2list(inputs)]
        name = f"{network}({', '.join(read)})"
        values = [str(each) for each in term2list(rest[1])] if rest else ["true"]
        made = {
            "values": values,
            "probabilities": None,
            "network": str(network),
            "inputs": list(map(str, term2list(inputs))),
        }
        groups.setdefault(f"nn {name}", {"name": name, **made})
        return ["choice", f"nn {name}", str(rest[0]) if rest else "true"]
    key = repr(node.group) if node.group is not None else f"fact {node.identifier}"
    group = groups.setdefault(key, {"name": "", "values": [], "probabilities": [], "network": "", "inputs": []})
    if node.is_extra:
        return ["rest", key, ""]
    while value in (*group["values"], "none"):
        value += "'"  # an alternative that is listed twice
    group["values"].append(value)
    group["probabilities"].append(_number(probability))
    group["name"] = "; ".join(group["values"])
    return ["choice", key, value]


def _value(node: Any) -> str:
    """The fact that a choice makes true."""
    name = node.name
    if getattr(name, "functor", None) == "choice" and name.arity >= 3:
        return str(name.args[2])
    return str(name)


def _number(probability: Any) -> float:
    if probability is True:
        return 1.0
    value = float(probability.compute_value() if hasattr(probability, "compute_value") else probability)
    if not 0.0 <= value <= 1.0:
        raise ValueError(f"{value} is not a probability")
    return value


def main() -> int:
    """Read the program, write the result, or {"error": a line}."""
    import resource

    sys.setrecursionlimit(20_000)
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    try:
        result: dict[str, Any] = grounded(sys.stdin.read())
    except MemoryError:
        result = {"error": "the program has no finite grounding that fits into memory"}
    except Exception as error:
        result = {"error": " ".join(str(error).split()) or type(error).__name__}
    sys.stdout.write(json.dumps(result))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
