"""Mutants of a source file: the same text with one small mistake in it."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.BitXor: ast.BitOr,
    ast.Pow: ast.Mult,
    ast.MatMult: ast.Mult,
}
NAMES = {
    **{"min": "max", "max": "min", "any": "all", "all": "any", "amin": "amax", "amax": "amin"},
    **{"zeros": "ones", "ones": "zeros", "argmin": "argmax", "argmax": "argmin"},
    **{"floor": "ceil", "ceil": "floor", "logsumexp": "amax", "union": "intersection"},
}
LARGE = 64
"""Larger numbers are limits and sizes of buffers: another one is rarely a mistake."""


@dataclass(frozen=True)
class Mutant:
    """One mistake in one function of one file.

    Args:
        path: of the file, from the folder of the package.
        function: where it is, as ``Class.method``; empty at module level.
        line: the first line of what is changed, from 1.
        first: the first line of the function; 0 at module level.
        was: the text that is replaced.
        now: what is there instead.
        source: the whole file, with the mistake.
        key: the same for the same mistake in the same function, wherever in the file the function is.
    """

    path: str
    function: str
    line: int
    first: int
    was: str
    now: str
    source: str
    key: str

    def __str__(self) -> str:
        was, now = (" ".join(text.split())[:60] for text in (self.was, self.now))
        return f"{self.path}:{self.line} {self.function}: {was} → {now}"


def mutants(path: str, source: str) -> Iterator[Mutant]:
    """All mutants of a file, in the order of its lines."""
    tree = ast.parse(source)
    offsets = [0]
    for line in source.encode().splitlines(keepends=True):
        offsets.append(offsets[-1] + len(line))
    data = source.encode()
    seen: dict[str, int] = {}
    for node, function, name in _places(tree):
        for new in _changed(node):
            begin = offsets[node.lineno - 1] + node.col_offset
            end = offsets[(node.end_lineno or 0) - 1] + (node.end_col_offset or 0)
            text = ast.unparse(new)
            if isinstance(node, ast.expr):
                text = f"({text})"
            changed = (data[:begin] + text.encode() + data[end:]).decode()
            was, first = data[begin:end].decode(), _first_line(function)
            around = ast.get_source_segment(source, function) if function is not None else was
            mark = "\0".join([path, name, str(around), was, text])
            seen[mark] = seen.get(mark, 0) + 1
            key = hashlib.sha256(f"{mark}\0{seen[mark]}".encode()).hexdigest()[:16]
            yield Mutant(path, name, node.lineno, first, was, text, changed, key)


def _first_line(function: ast.AST | None) -> int:
    """What Python takes for the first line of a function: that of its first decorator."""
    if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
        return 0
    return min([function.lineno, *(part.lineno for part in function.decorator_list)])


def _places(tree: ast.Module) -> Iterator[tuple[ast.expr | ast.stmt, ast.AST | None, str]]:
    """Statements and expressions that may be changed, each with its innermost function and the name of that."""
    pending: list[tuple[ast.AST, ast.AST | None, str]] = [(tree, None, "")]
    while pending:
        node, function, name = pending.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            name = f"{name}.{node.name}".lstrip(".")
            function = node if not isinstance(node, ast.ClassDef) else function
            inside: list[ast.AST] = [*node.body]
            if function is node:
                inside += [default for default in node.args.defaults + node.args.kw_defaults if default is not None]
            if ast.get_docstring(node) is not None:
                inside.remove(node.body[0])
        else:
            inside = _inside(node)
            if isinstance(node, ast.expr | ast.stmt) and function is not None:
                yield node, function, name
        pending.extend((part, function, name) for part in reversed(inside))


def _inside(node: ast.AST) -> list[ast.AST]:
    """The parts of a node, without annotations, messages of errors and what is for type checking only."""
    match node:
        case ast.Raise() | ast.Import() | ast.ImportFrom() | ast.JoinedStr() | ast.Assert():
            return []
        case ast.If(test=ast.Name(id="TYPE_CHECKING")):
            return []
        case ast.AnnAssign():
            return [] if node.value is None else [node.value]
        case ast.Call(func=ast.Name(id="cast" | "print" | "repr" | "format")):
            return []
        case ast.Call() if isinstance(node.func, ast.Name) and node.func.id.endswith("Error"):
            return []
    return [*ast.iter_child_nodes(node)]


def _changed(node: ast.expr | ast.stmt) -> Iterator[ast.expr | ast.stmt]:
    """What may stand in the place of a node."""
    match node:
        case ast.Compare() if type(node.ops[0]) in COMPARISONS:
            yield ast.Compare(node.left, [COMPARISONS[type(node.ops[0])](), *node.ops[1:]], node.comparators)
        case ast.BinOp() if type(node.op) in ARITHMETIC and not _is_text(node):
            yield ast.BinOp(node.left, ARITHMETIC[type(node.op)](), node.right)
        case ast.BoolOp():
            yield ast.BoolOp(ast.And() if isinstance(node.op, ast.Or) else ast.Or(), node.values)
            yield ast.BoolOp(node.op, node.values[1:]) if len(node.values) > 2 else node.values[0]
        case ast.UnaryOp(op=ast.Not() | ast.USub() | ast.Invert()):
            yield node.operand
        case ast.IfExp():
            yield ast.IfExp(node.test, node.orelse, node.body)
        case ast.Constant(value=bool()):
            yield ast.Constant(not node.value)
        case ast.Constant(value=int() | float()) if abs(node.value) <= LARGE:
            yield ast.Constant(node.value + 1)
        case ast.Call(func=ast.Attribute(attr=name)) if name in NAMES and isinstance(node.func, ast.Attribute):
            yield ast.Call(ast.Attribute(node.func.value, NAMES[name]), node.args, node.keywords)
        case ast.Call(func=ast.Name(id=name)) if name in NAMES:
            yield ast.Call(ast.Name(NAMES[name]), node.args, node.keywords)
        case ast.AugAssign() if type(node.op) in ARITHMETIC:
            yield ast.AugAssign(node.target, ARITHMETIC[type(node.op)](), node.value)
        case ast.Raise() | ast.Continue() | ast.Break() | ast.Delete():
            yield ast.Pass()
        case ast.Expr(value=ast.Call()):
            yield ast.Pass()
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            yield ast.Pass()
        case ast.Return(value=ast.expr()) if not isinstance(node.value, ast.Constant):
            yield ast.Return(ast.Constant(None))


def _is_text(node: ast.BinOp) -> bool:
    """Whether texts are joined: that is about messages."""
    return any(
        isinstance(side, ast.JoinedStr) or (isinstance(side, ast.Constant) and isinstance(side.value, str))
        for side in (node.left, node.right)
    )
