"""Makes a failing case smaller: tries to leave things out, for as long as the same check fails."""

from __future__ import annotations

import ast
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any


def shrink(case: Any, still_fails: Callable[[Any], bool], seconds: float = 20.0) -> Any:
    """The smallest case found that still fails."""
    end = time.monotonic() + seconds
    progress = True
    while progress:
        progress = False
        for other in case.simpler():
            if time.monotonic() > end:
                return case
            if other != case and still_fails(other):
                case, progress = other, True
                break
    return case


def fewer(items: Sequence[Any]) -> Iterator[list[Any]]:
    """The items without one half of them, then without one of them."""
    half = len(items) // 2
    if half > 1:
        yield list(items[:half])
        yield list(items[half:])
    for i in range(len(items)):
        yield [*items[:i], *items[i + 1 :]]


def simpler_text(source: str) -> Iterator[str]:
    """Python expressions with one part fewer, or a smaller number."""
    tree = ast.parse(source, mode="eval").body
    for made in _simpler(tree):
        text = ast.unparse(made)
        if text != source:
            yield text


def _simpler(node: ast.AST) -> Iterator[ast.AST]:
    """Replacements of a node: by what is inside, by itself with less in it, then with one part made simpler."""
    if isinstance(node, ast.BinOp):
        yield from (node.left, node.right)
    if isinstance(node, ast.UnaryOp):
        yield node.operand
    if isinstance(node, ast.Call):
        yield from (arg for arg in node.args if isinstance(arg, ast.Call | ast.BinOp | ast.UnaryOp))
        for arg in node.args:
            if isinstance(arg, ast.List):
                yield from (item for item in arg.elts if isinstance(item, ast.Call | ast.BinOp | ast.UnaryOp))
        for keywords in fewer(node.keywords):
            yield _with(node, keywords=keywords)
        if _name(node) in ("And", "Or", "Xor", "one_hot"):
            for args in fewer(node.args):
                yield _with(node, args=args)
    if isinstance(node, ast.List | ast.Tuple):
        for elts in fewer(node.elts):
            yield _with(node, elts=elts)
    if isinstance(node, ast.Dict):
        for pairs in fewer(list(zip(node.keys, node.values, strict=True))):
            yield _with(node, keys=[k for k, _ in pairs], values=[v for _, v in pairs])
    if isinstance(node, ast.Constant):
        yield from (ast.Constant(value) for value in _smaller(node.value))
    for field, value in ast.iter_fields(node):
        if isinstance(value, ast.AST):
            yield from (_with(node, **{field: made}) for made in _simpler(value))
        elif isinstance(value, list):
            for i, item in enumerate(value):
                if isinstance(item, ast.AST):
                    yield from (_with(node, **{field: [*value[:i], made, *value[i + 1 :]]}) for made in _simpler(item))


def _smaller(value: Any) -> list[Any]:
    if isinstance(value, int | float) and not isinstance(value, bool) and value > 1:
        return [1, int(value) - 1] if value > 2 else [1]
    lines = value.split("\n") if isinstance(value, str) else []
    return ["\n".join(some) for some in fewer(lines)] if len(lines) > 1 else []


def _with(node: Any, **fields: Any) -> Any:
    return type(node)(**{**dict(ast.iter_fields(node)), **fields})


def _name(node: ast.Call) -> str:
    return node.func.attr if isinstance(node.func, ast.Attribute) else ""
