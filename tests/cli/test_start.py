"""How the command line starts and stops: version and help without torch, and Ctrl-C."""

from __future__ import annotations

import io
import os
import random
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from selection import spread

from semprola._version import __version__
from semprola.cli.messages import in_words
from semprola.cli.output import painted

pytest.importorskip("typer")
NAMES = ["compile", "count", "check", "draw", "train", "predict", "compare", "playground", "cache"]


def test_version() -> None:
    done = subprocess.run([sys.executable, "-m", "semprola", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"semprola {__version__}\n"


@pytest.mark.parametrize("name", ["", *NAMES])
def test_help_loads_nothing_heavy(name: str) -> None:
    """The slow imports are torch, then numpy and networkx."""
    code = """
import sys
sys.argv = ["semprola", *sys.argv[1].split(), "--help"]
from semprola.cli import main
try:
    main()
finally:
    heavy = {"torch", "numpy", "networkx", "pysdd", "scipy", "sklearn", "rich"} & sys.modules.keys()
    assert not heavy, heavy
"""
    done = subprocess.run([sys.executable, "-c", code, name], capture_output=True, text=True, check=True)
    assert "Usage: semprola" in done.stdout
    assert not done.stderr


@pytest.mark.skipif(os.name != "posix", reason="closes a pipe")
def test_a_reader_that_stops_is_no_error() -> None:
    """As in ``semprola count … | head -0``."""
    command = [sys.executable, "-m", "semprola", "count", "a -> b"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait() == 141


@pytest.mark.parametrize("name", ["", *NAMES])
def test_help_fits_80_columns_and_is_complete(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    said = help_of(name)
    assert all(len(line) <= 80 for line in said.splitlines())
    assert "..." not in said.replace("COMMAND [ARGS]...", "")
    if name:
        command = shlex.split(said.split("Example:")[1].split("\n\n")[1].replace("\\\n", " "))
        assert command[:2] == ["semprola", name]
        assert {word for word in command if word.startswith("--")} <= set(said.split())


def test_help_names_the_methods_of_compare() -> None:
    from semprola.comparison import METHODS

    (text,) = [part for part in help_of("compare").split("\n\n") if part.strip().startswith("The methods are")]
    assert [word for word in re.findall(r"[\w-]+", text) if word in METHODS] == list(METHODS)


def test_words_that_are_nearly_right_get_a_suggestion() -> None:
    assert "Did you mean 'train'?" in help_of("trian")
    assert "--labels" in help_of("compile --lables x")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["timeout", "split"], "split the constraint: --split, or raise --timeout (tried: sdd)"),
        (["timeout", "backend"], "raise --timeout, or try --backend auto (tried: sdd)"),
        ([], "raise timeout= (tried: sdd)"),
    ],
)
def test_advice_is_what_the_command_can_follow(options: list[str], words: str) -> None:
    advice = "split the constraint: sp.split(rules), or raise timeout=, or try backend='auto' (tried: sdd)"
    assert in_words(ValueError(advice), options) == words


def help_of(words: str) -> str:
    from semprola.cli import app

    typer = pytest.importorskip("typer")
    testing = pytest.importorskip("typer.testing")
    answer = testing.CliRunner().invoke(app.build(typer), [*words.split(), "--help"])
    return str(answer.output)


def test_colour_is_for_terminals_only(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert painted("error", "red", Terminal()) == "\x1b[1;31merror\x1b[0m"
    assert painted("error", "red", io.StringIO()) == "error"
    monkeypatch.setenv("NO_COLOR", "1")
    assert painted("error", "red", Terminal()) == "error"


@pytest.mark.skipif(os.name != "posix", reason="sends the signal of Ctrl-C")
@pytest.mark.parametrize("backend", spread(["sdd", "topdown"], 1))
def test_ctrl_c_says_what_was_kept(tmp_path: Path, backend: str) -> None:
    """This also works while PySDD runs in a child process; the signal goes to the parent alone."""
    rng = random.Random(0)
    clauses = [[v * rng.choice((-1, 1)) for v in rng.sample(range(1, 151), 3)] for _ in range(450)]
    text = "p cnf 150 450\n" + "".join(f"{a} {b} {c} 0\n" for a, b, c in clauses)
    (tmp_path / "hard.cnf").write_text(text)
    process = subprocess.Popen(
        [sys.executable, "-m", "semprola", "compile", "hard.cnf", "--backend", backend, "--out", "hard.sp"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "SEMPROLA_CACHE": str(tmp_path / "cache")},
    )
    time.sleep(3)
    assert process.poll() is None
    sent = time.monotonic()
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert time.monotonic() - sent < 2  # a second, and slack for a busy machine
    assert process.returncode == 130
    assert said.strip().splitlines()[-1] == "interrupted: nothing was written"
    assert "Traceback" not in said
    assert not (tmp_path / "hard.sp").exists()
