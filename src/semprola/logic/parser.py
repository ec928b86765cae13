"""The parser: from text to a formula, with errors that point into the text."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, NoReturn

from semprola.errors import ParseError
from semprola.logic import connectives
from semprola.logic.arithmetic import EXAMPLE, SYMBOLS, Comparisons, declared, read_declarations
from semprola.logic.connectives import And, Bool
from semprola.logic.formula import FALSE, TRUE, Formula, Kind, intern_node
from semprola.logic.messages import brief
from semprola.logic.syntax import (
    CONNECTIVES,
    CONSTANTS,
    FUNCTIONS,
    LOGIC_SIGNS,
    NEGATIONS,
    PRECEDENCE,
    UNESCAPES,
    is_file_name,
    name_end,
    quote,
)


def parse(text: str, variables: Iterable[Any] = ()) -> Formula:
    """Read a formula.

    The operators, from tightest to loosest: ``! ~ not ¬``, ``& && and ∧``, ``^ xor ⊕``, ``| || or ∨``,
    ``-> => implies → ⇒`` (groups to the right), ``<-> <=> iff ↔ ⇔``. The constants are ``true`` and ``false``. The
    functions ``exactly(2, a, b, c)``, ``at_most``, ``at_least``, ``one_hot(a, b)`` and ``count(lo, hi, a, b, c)`` take
    any formulas. A name consists of letters and digits of any script, ``_``, ``.`` and ``:``; other labels need
    quotes, as in ``"01/01/03"``. ``#`` starts a comment.

    Each line is a rule, and all rules must hold. A rule may have a name, as in ``cats: cat -> animal``. It continues on
    the next line inside parentheses, and before and after an operator. Files of rules are read by ``sp.rules.read``.

    Numbers are compared as in ``2*n + m <= 7 -> x``: with ``+ - * // %``, ``abs``, ``min``, ``max``,
    ``element(place, item, item)``, ``0 <= n < 5``, ``n in (1, 2)`` and ``all_different(n, m)``. The variables are
    declared in lines of their own, ``variable n, m: 0..9`` and ``variable colour: red, green``, or listed in
    `variables`.

    Args:
        text: the formula, or one rule per line.
        variables: integers and categoricals that the text speaks of and does not declare.

    Raises:
        ParseError: the text is not a formula; the message shows where.
        LabelError: the variables are not variables, or two have the same name.

    Example:
        >>> parse("(cat -> animal) & (dog -> animal)")
        (cat -> animal) & (dog -> animal)
        >>> parse("cat & -> animal")
        Traceback (most recent call last):
        semprola.errors.ParseError: at 1:7: expected a formula, found '->'
        cat & -> animal
              ^
    """
    if not isinstance(text, str):
        raise TypeError(f"parse: expected a string, got {brief(text)}")
    if is_file_name(text):
        word = text.strip()
        message = f"this looks like a file: read it with sp.rules.read; a label of this name is written {quote(word)}"
        raise parse_error(text, text.index(word), message)
    rules = parse_lines(text, variables)
    if not rules:
        raise parse_error(text, 0, "expected a formula, found the end of the text")
    return And([rule.formula for rule in rules])


class Rule(NamedTuple):
    """A rule of a text: the formula, its name (empty if it has none), its first line, counted from 1, and its words."""

    formula: Formula
    name: str
    line: int
    text: str


def parse_lines(text: str, variables: Iterable[Any] = ()) -> list[Rule]:
    """The rules of a text, one per line, see :func:`parse`; none if there are only comments."""
    listed = list(variables)
    if not listed and "variable" not in text:
        return _Parser(text, {}).run()
    rest, own = read_declarations(text, parse_error)
    return _Parser(rest, declared([*listed, *own])).run()


class _Token(NamedTuple):
    type: str  # "name", "quoted", "end", or "symbol"; a keyword is a symbol
    text: str
    position: int
    first: bool = False  # whether it is the first of its line


class _Open(NamedTuple):
    """An item waiting on the stack: an operator for its right side, or a parenthesis (precedence 0) for its end."""

    precedence: int
    position: int
    kind: Kind | None = None
    function: str = ""
    numbers: tuple[int, ...] = ()
    first_operand: int = 0


class _Parser:
    """Precedence climbing with an explicit stack: only memory limits the nesting."""

    def __init__(self, text: str, variables: Mapping[str, Any]) -> None:
        self.text = text
        self.tokens = _tokens(text, _SYMBOL_WITH_NUMBERS if variables else _SYMBOL)
        self.comparisons = Comparisons(self.tokens, variables, self._fail) if variables else None
        self.index = 0
        self.operands: list[Formula] = []
        self.stack: list[_Open] = []
        self.rules: list[Rule] = []
        self.line, self.counted = 1, 0

    def run(self) -> list[Rule]:
        while self.tokens[self.index].type != "end":
            self._read_rule()
        return self.rules

    def _read_rule(self) -> None:
        """Read up to the end of a line after which the rule does not continue."""
        first = self.tokens[self.index]
        self.line += self.text.count("\n", self.counted, first.position)
        self.counted = first.position
        name = self._read_name()
        begin = self.tokens[self.index].position
        wants_operand = True
        while True:
            token = self.tokens[self.index]
            if not wants_operand and (token.type == "end" or self._begins_rule(token)):
                words = _SPACES.sub(" ", self.text[begin : token.position]).strip()
                self.rules.append(Rule(self._finish(), name, self.line, words))
                return
            self.index += 1
            wants_operand = self._read_operand(token) if wants_operand else self._read_operator(token)

    def _read_name(self) -> str:
        """The name of a rule, as in ``name: rule`` or ``"a longer name": rule``; empty if it has none."""
        token = self.tokens[self.index]
        after = self.tokens[self.index + 1] if token.type != "end" else token
        if token.type == "quoted" and after.text == ":" and after.type == "symbol":
            self.index += 2
            return token.text
        # a label may end in a colon too, but then an operator, not a formula, follows
        if token.type == "name" and token.text.endswith(":") and self._begins_formula(after) and not after.first:
            self.index += 1
            return token.text.rstrip(":")
        return ""

    def _begins_formula(self, token: _Token) -> bool:
        if token.type == "symbol":
            return token.text in ("(", *NEGATIONS, *CONSTANTS) or (token.text == "-" and self.comparisons is not None)
        return token.type != "end"

    def _begins_rule(self, token: _Token) -> bool:
        """Whether a token after a complete formula is the beginning of the next rule, on a line of its own."""
        if not token.first or not self._begins_formula(token):
            return False
        return all(opened.precedence for opened in self.stack)

    def _read_operand(self, token: _Token) -> bool:
        """Read one token where a formula must begin; return whether one must still begin."""
        if self.comparisons is not None and self.comparisons.begins(place := self.index - 1):
            made, self.index = self.comparisons.read(place)
            self.operands.append(made)
            return False
        if token.type == "quoted":
            self.operands.append(Bool(token.text))
            return False
        if token.type == "name":
            after = self.tokens[self.index]
            if _RANGE.fullmatch(token.text):
                self._fail("a range is not a formula: declare a variable", token, f", as in {EXAMPLE}", found=False)
            if after.text == "(" and after.type == "symbol" and (token.text in FUNCTIONS or not after.first):
                return self._open_function(token)
            self.operands.append(Bool(token.text))
            return False
        if token.type == "symbol" and token.text in CONSTANTS:
            self.operands.append(TRUE if CONSTANTS[token.text] is Kind.TRUE else FALSE)
            return False
        if token.type == "symbol" and token.text in NEGATIONS:
            self.stack.append(_Open(PRECEDENCE[Kind.NOT], token.position, Kind.NOT))
            return True
        if token.type == "symbol" and token.text == "(":
            self.stack.append(_Open(0, token.position))
            return True
        self._fail("expected a formula", token)

    def _read_operator(self, token: _Token) -> bool:
        """Read one token after a complete formula; return whether another formula must follow."""
        kind = CONNECTIVES.get(token.text) if token.type == "symbol" else None
        if kind is not None:
            # Implication groups to the right: an equal operator on the stack must wait.
            self._reduce(PRECEDENCE[kind] + (kind is Kind.IMPLIES))
            self.stack.append(_Open(PRECEDENCE[kind], token.position, kind))
            return True
        if token.type == "symbol" and token.text in (",", ")"):
            self._reduce(1)
            if not self.stack:
                self._fail(f"{token.text!r} without an opening '(' before it", token, found=False)
            if token.text == ",":
                if not self.stack[-1].function:
                    self._fail("expected ')' or an operator", token, f"; only {_function_list()} take commas")
                return True
            self._close()
            return False
        hint = ""
        if self.operands and self.operands[-1] is Bool("variable") and token.type in ("name", "quoted"):
            hint = f"; a variable is declared as in {EXAMPLE}"
        if token.type == "symbol" and token.text not in ("!", "~", "("):
            hint = f"; a variable with numbers is declared as in {EXAMPLE}"
        if token.type == "name" and token.text.lower() in (*NEGATIONS, *CONNECTIVES):
            hint = " (keywords are written in lower case)"
        inside = any(not opened.precedence for opened in self.stack)
        self._fail("expected an operator" + (" or ')'" if inside else ""), token, hint)

    def _open_function(self, name: _Token) -> bool:
        """Read ``name(`` and its leading numbers; return whether a formula must follow."""
        if name.text not in FUNCTIONS:
            self._fail(
                f"unknown function {brief(name.text)}; the functions are {_function_list()}; quote a name with '('",
                name,
                found=False,
            )
        opening = self._next()
        numbers: list[int] = []
        for number in range(FUNCTIONS[name.text]):
            if number:
                self._expect(",")
            numbers.append(self._read_number(name.text))
        self.stack.append(_Open(0, opening.position, None, name.text, tuple(numbers), len(self.operands)))
        if self.tokens[self.index].type == "symbol" and self.tokens[self.index].text == ")":
            self.index += 1
            self._close()
            return False
        if numbers:
            self._expect(",")
        return True

    def _read_number(self, function: str) -> int:
        token = self._next()
        if not re.fullmatch(r"[0-9]{1,18}", token.text) or token.type != "name":
            self._fail(f"{function} expects a whole number below 10^18 here", token)
        return int(token.text)

    def _expect(self, symbol: str) -> None:
        token = self._next()
        if token.type != "symbol" or token.text != symbol:
            self._fail(f"expected {symbol!r}", token)

    def _next(self) -> _Token:
        token = self.tokens[self.index]
        # The index never moves past the end token, so it is always possible to look ahead.
        self.index += token.type != "end"
        return token

    def _reduce(self, precedence: int) -> None:
        """Build the waiting operators that bind at least this tightly."""
        while self.stack and self.stack[-1].precedence >= precedence and self.stack[-1].kind is not None:
            kind = self.stack.pop().kind
            arity = 1 if kind is Kind.NOT else 2
            args = tuple(self.operands[-arity:])
            del self.operands[-arity:]
            self.operands.append(intern_node(kind, args))  # type: ignore[arg-type]

    def _close(self) -> None:
        opened = self.stack.pop()
        if not opened.function:
            return
        args = self.operands[opened.first_operand :]
        del self.operands[opened.first_operand :]
        try:
            self.operands.append(getattr(connectives, opened.function)(*opened.numbers, args))
        except ValueError as error:
            raise parse_error(self.text, opened.position, str(error)) from None

    def _finish(self) -> Formula:
        self._reduce(1)
        if self.stack:
            raise parse_error(self.text, self.stack[-1].position, "this '(' is never closed")
        return self.operands.pop()

    def _fail(self, message: str, token: _Token, hint: str = "", found: bool = True) -> NoReturn:
        if found:
            what = "the end of the text" if token.type == "end" else brief(token.text, width=30)
            message = f"{message}, found {what}"
        raise parse_error(self.text, token.position, message + hint)


_RANGE = re.compile(r"\d+\.\.\d+")
_SPACES = re.compile(r"\s+(?:#[^\n]*\s*)*")
_SPACE = re.compile(r"(?:\s|#[^\n]*)*")
_SYMBOL = re.compile(rf"<->|<=>|->|=>|&&|\|\||[!~&|^(),{LOGIC_SIGNS}]|(?<=[\"']):(?=\s)")
_SYMBOL_WITH_NUMBERS = re.compile(SYMBOLS + rf"|[{LOGIC_SIGNS}]|(?<=[\"']):(?=\s)")
_QUOTED = re.compile(r'"[^"\\\n]*(?:\\.[^"\\\n]*)*"' + r"|'[^'\\\n]*(?:\\.[^'\\\n]*)*'")
_ESCAPE = re.compile(r"\\(.)")
_KEYWORDS = frozenset({word for word in (*NEGATIONS, *CONNECTIVES, *CONSTANTS) if word.isalpha()})
_CHARACTER_HINTS = {
    "-": "; implication is '->', and a name with '-' must be quoted",
    "<": f"; equivalence is '<->'; for numbers, write a line such as {EXAMPLE}",
    ">": f"; implication is '->'; for numbers, write a line such as {EXAMPLE}",
    "=": f"; implication is '=>', equivalence is '<->'; for numbers, write a line such as {EXAMPLE}",
    "/": "; a name with '/' must be quoted, as in \"01/01/03\"",
    "[": "; group with '(' and ')'; counts list their labels without brackets, as in exactly(1, a, b)",
    "{": "; group with '(' and ')'",
    "*": f"; conjunction is '&'; for numbers, write a line such as {EXAMPLE}",
    "+": f"; disjunction is '|'; for numbers, write a line such as {EXAMPLE}",
    "…": "; the text was cut off when printed; str(formula) gives all of it",
}


def _tokens(text: str, symbols: re.Pattern[str]) -> list[_Token]:
    tokens: list[_Token] = []
    end = 0
    while True:
        space = _SPACE.match(text, end)
        position = space.end() if space else end
        if position == len(text):
            # An error about something missing points right behind the last token, not behind comments and blank lines.
            tokens.append(_Token("end", "", end if tokens else 0))
            return tokens
        first = not tokens or text.find("\n", end, position) >= 0
        token, end = _token_at(text, position, symbols)
        tokens.append(token._replace(first=first))


def _token_at(text: str, position: int, symbols: re.Pattern[str]) -> tuple[_Token, int]:
    match = symbols.match(text, position)
    if match:
        return _Token("symbol", match.group(), position), match.end()
    end = name_end(text, position)
    if end > position:
        word = text[position:end]
        return _Token("symbol" if word in _KEYWORDS else "name", word, position), end
    match = _QUOTED.match(text, position)
    if match:
        return _Token("quoted", _unquoted(text, match), position), match.end()
    character = text[position]
    if character in "'\"":
        raise parse_error(text, position, "this quote is never closed on its line")
    hint = _CHARACTER_HINTS.get(character, "; quote names with special characters")
    raise parse_error(text, position, f"unexpected character {character!r}{hint}")


def _unquoted(text: str, quoted: re.Match[str]) -> str:
    if len(quoted.group()) == 2:
        raise parse_error(text, quoted.start(), "a quoted name needs at least one character")
    for escape in _ESCAPE.finditer(text, quoted.start(), quoted.end()):
        if escape.group(1) not in UNESCAPES:
            raise parse_error(
                text, escape.start(), f"unknown escape {escape.group()!r}; a backslash itself is written twice"
            )
    return _ESCAPE.sub(lambda escape: UNESCAPES[escape.group(1)], quoted.group()[1:-1])


def _function_list() -> str:
    return ", ".join(FUNCTIONS)


# Columns shown on either side of the caret.
_HALF_WINDOW = 36


def parse_error(text: str, position: int, message: str) -> ParseError:
    """Return the error with its position, the line of text and a caret below it."""
    start = text.rfind("\n", 0, position) + 1
    stop = text.find("\n", position)
    line = text[start : stop if stop >= 0 else len(text)].rstrip("\r")
    at = position - start
    left, right = _window(line, at)
    before = ("…" if left else "") + _printable(line[left:at])
    shown = before + _printable(line[at:right]) + ("…" if right < len(line) else "")
    row, column = text.count("\n", 0, position) + 1, at + 1
    return ParseError(
        f"at {row}:{column}: {message}\n{shown}\n{' ' * sum(map(_width, before))}^", line=row, column=column
    )


def _window(line: str, at: int) -> tuple[int, int]:
    left, columns = min(at, len(line)), 0
    while left > 0 and (columns := columns + max(1, _width(line[left - 1]))) <= _HALF_WINDOW:
        left -= 1
    right, columns = min(at, len(line)), 0
    while right < len(line) and (columns := columns + max(1, _width(line[right]))) <= _HALF_WINDOW:
        right += 1
    return left, right


def _width(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _printable(text: str) -> str:
    return "".join([character if character.isprintable() else " " for character in text])
