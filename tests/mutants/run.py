"""How many small mistakes do the tests find? ``make mutants``, or ``python tests/mutants/run.py --help``.

Draws mutants of the named packages (the same for the same seed), tries each in a copy of ``src`` on the tests that
call the function it is in, and appends a line to ``tests/mutants/results.jsonl``. Runs resume: what is in that file is
tried again only after its function has changed. A second run with ``--extensive`` tries the survivors on the tests that
only `make test-all` runs. What these find (``"result": "extensive"``) deserves a test in every run.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from operators import Mutant, mutants  # noqa: E402

ROOT = HERE.parents[1]
RESULTS = HERE / "results.jsonl"
WORK = ROOT / "build" / "mutants"
PACKAGES = ("engine", "compiler", "distributions")
FOLDERS = ("engine", "compiler", "distributions", "nn", "constraints", "circuit")
SECONDS = 40.0
MEMORY = 12 << 30
SLOW = 8.0
"""A test is stopped when it takes this many times its usual CPU time, and some seconds."""


def main() -> None:
    """Try mutants until the time is up."""
    arguments = _arguments()
    suite = Suite(arguments.folders)
    known = read_results()
    every = drawn(arguments.packages, arguments.count, arguments.seed)
    wanted = "survived" if arguments.extensive else None
    chosen = [mutant for mutant in every if known.get(mutant.key, {"result": None})["result"] == wanted]
    print(f"{len(chosen)} mutants to try; results go to {RESULTS}")
    _import_what_is_large()
    until = time.monotonic() + 60 * arguments.minutes
    for number, mutant in enumerate(chosen, 1):
        if time.monotonic() > until:
            print("The time is up: run this again to go on")
            break
        entry = tried(mutant, suite, arguments.seconds, arguments.extensive)
        with RESULTS.open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry, ensure_ascii=False) + "\n")
        print(f"{number}/{len(chosen)} {entry['result']:10} {mutant}", flush=True)
    summary(every)


def drawn(packages: Sequence[str], count: int, seed: int) -> list[Mutant]:
    """The same number of mutants from each package; a function that changes does not change which others are drawn."""
    chosen: list[Mutant] = []
    for package in packages:
        folder = ROOT / "src" / "semprola"
        found = [
            mutant
            for path in sorted((folder / package).rglob("*.py"))
            if not path.name.startswith("triton")  # runs only on a GPU, or in `make test-triton`
            for mutant in mutants(path.relative_to(folder).as_posix(), path.read_text(encoding="utf-8"))
        ]
        found.sort(key=lambda mutant: hashlib.sha256(f"{seed} {mutant.key}".encode()).digest())
        chosen += found[: -(-count // len(packages))]
    return sorted(chosen, key=lambda mutant: hashlib.sha256(f"{seed} {mutant.key}".encode()).digest())


class Suite:
    """The tests of some folders, and which functions each of them calls."""

    def __init__(self, folders: Sequence[str]) -> None:
        self.calls: dict[str, set[str]] = {}
        self.seconds: dict[str, float] = {}
        self.extensive: list[str] = []
        for folder in folders:
            made = WORK / f"reached-{folder}.json"
            if not made.is_file():
                _record(folder, made)
            found = json.loads(made.read_text(encoding="utf-8"))
            for test, entry in found["tests"].items():
                if entry["passed"]:
                    self.calls[test] = {found["functions"][call] for call in entry["calls"]}
                    self.seconds[test] = entry["seconds"]
            self.extensive += found["extensive"]
        usual: dict[str, list[float]] = {}
        for test, seconds in self.seconds.items():
            usual.setdefault(_function(test), []).append(seconds)
        for test in self.extensive:
            known = usual.get(_function(test), [2.0])
            self.seconds[test] = sum(known) / len(known)

    def calling(self, mutant: Mutant) -> tuple[list[str], list[str]]:
        """The tests that call a function, and the extensive ones that may; of its own package and cheap ones first."""
        place, folder = f"{mutant.path}:{mutant.first}", f"tests/{mutant.path.partition('/')[0]}/"
        every_run = [test for test, calls in self.calls.items() if place in calls]
        if not every_run:  # called when it is imported, or in another process: see what calls something beside it
            beside = mutant.path.rpartition("/")[0] + "/"
            every_run = [test for test, calls in self.calls.items() if any(call.startswith(beside) for call in calls)]
        functions, known = {_function(test) for test in every_run}, {_function(test) for test in self.calls}
        extensive = [
            test
            for test in self.extensive
            if _function(test) in functions or (_function(test) not in known and test.startswith(folder))
        ]

        def cost(test: str) -> float:
            mirror = f"test_{Path(mutant.path).stem}" in _file(test)
            return self.seconds[test] * (0.2 if mirror else 1 if test.startswith(folder) else 3)

        return sorted(every_run, key=cost), sorted(extensive, key=cost)


def _function(test: str) -> str:
    """The id of a test without its parameters."""
    return test.partition("[")[0]


def _record(folder: str, made: Path) -> None:
    print(f"Recording what the tests of {folder} call", flush=True)
    WORK.mkdir(parents=True, exist_ok=True)
    paths = [ROOT / "src", HERE, ROOT / "tests" / "support"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths)), "REACHED": str(made)}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "reached", "-p", "no:cacheprovider", f"tests/{folder}"]
    with made.with_suffix(".log").open("w") as log:
        subprocess.run(command, cwd=ROOT, env=environment, stdout=log, stderr=log, check=False)
    if not made.is_file():
        raise SystemExit(f"the tests of {folder} could not be run: see {made.with_suffix('.log')}")


def tried(mutant: Mutant, suite: Suite, seconds: float, extensive: bool) -> dict[str, Any]:
    """One line of the results."""
    entry: dict[str, Any] = {"key": mutant.key, "mutant": str(mutant)}
    result = "found by none" if extensive else "unreached"
    for some in _portions(suite.calling(mutant)[extensive], suite, seconds):
        result = "found by none" if extensive else "survived"
        if killer := _killer(mutant, suite, some):
            return entry | {"result": "extensive" if extensive else "killed", "by": killer}
    return entry | {"result": result}


def _portions(tests: Sequence[str], suite: Suite, seconds: float) -> Iterator[list[str]]:
    """First a few tests of three files, which find most mutants; then as many of the others as the time allows."""
    files = list(dict.fromkeys(_file(test) for test in tests))[:3]
    first, rest, total = [], [], 0.0
    for test in tests:
        if total + suite.seconds[test] > seconds:
            continue
        total += suite.seconds[test]
        (first if _file(test) in files and len(first) < 60 else rest).append(test)
    yield from (portion for portion in (first, rest) if portion)


def _file(test: str) -> str:
    return test.partition("::")[0]


def _killer(mutant: Mutant, suite: Suite, tests: Sequence[str]) -> str | None:
    """The test that fails on the mutant, in a process of its own, or None."""
    copy, said = WORK / "src", WORK / "killer"
    shutil.rmtree(copy, ignore_errors=True)
    said.unlink(missing_ok=True)
    shutil.rmtree(WORK / "tmp", ignore_errors=True)
    (WORK / "tmp").mkdir(parents=True)
    shutil.copytree(ROOT / "src", copy)
    (copy / "semprola" / mutant.path).write_text(mutant.source, encoding="utf-8")
    child = os.fork()
    if child == 0:
        _run_tests(suite, tests, copy, said)
    deadline = time.monotonic() + 1200
    while os.waitpid(child, os.WNOHANG)[0] == 0:
        if time.monotonic() > deadline:
            os.kill(child, signal.SIGKILL)
        time.sleep(0.02)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)  # what the tests have started and left behind
    killer = said.read_text(encoding="utf-8") if said.exists() else "no test could start"
    return killer.strip() or None


def _run_tests(suite: Suite, tests: Sequence[str], copy: Path, said: Path) -> None:
    """In the child: run the tests on the copy, and write down the first that fails."""
    os.setsid()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    quiet = os.open(WORK / "child.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(quiet, 1)
    os.dup2(quiet, 2)
    os.chdir(ROOT)
    sys.path[:0] = [str(copy)]
    os.environ |= {"PYTHONPATH": str(copy), "TMPDIR": str(WORK / "tmp")}
    tempfile.tempdir = None
    import pytest

    code = 1
    try:
        files = list(dict.fromkeys(test.partition("::")[0] for test in tests))
        arguments = ["-x", "-q", "-p", "no:cacheprovider", "-m", "", "--tb=line", "-W", "ignore:Module already", *files]
        code = pytest.main(arguments, plugins=[_Only(tests, suite, said)])
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        if code == 0:
            said.write_text("")
        os._exit(0)


class _Only:
    """A pytest plugin that runs the given tests in their order, each for a limited time."""

    def __init__(self, tests: Sequence[str], suite: Suite, said: Path) -> None:
        self.order = {test: position for position, test in enumerate(tests)}
        self.suite, self.said = suite, said
        self.said.write_text("collecting")

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        items[:] = sorted((i for i in items if i.nodeid in self.order), key=lambda item: self.order[item.nodeid])

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.said.write_text(nodeid)  # stays there if the process dies
        limit = 10 + SLOW * self.suite.seconds[nodeid]
        signal.signal(signal.SIGPROF, signal.SIG_DFL)  # ends the process, in native code, too
        signal.setitimer(signal.ITIMER_PROF, limit)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)  # and if it waits for ever
        signal.setitimer(signal.ITIMER_REAL, 10 * limit)


def read_results() -> dict[str, dict[str, Any]]:
    """What is known of each mutant, by key."""
    if not RESULTS.is_file():
        return {}
    entries = [json.loads(line) for line in RESULTS.read_text(encoding="utf-8").splitlines() if line]
    return {entry["key"]: entry for entry in entries}


def summary(chosen: Sequence[Mutant]) -> None:
    """A line for each package."""
    known = read_results()
    for package in sorted({mutant.path.partition("/")[0] for mutant in chosen}):
        here = [known[m.key]["result"] for m in chosen if m.key in known and m.path.startswith(f"{package}/")]
        print(f"{package}: {len(here)} tried, {', '.join(f'{n} {what}' for what, n in Counter(here).most_common())}")


def _import_what_is_large() -> None:
    """Once, before the children are forked: everything but the package."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    import hypothesis  # noqa: F401
    import networkx  # noqa: F401
    import pysdd.sdd  # noqa: F401
    import pytest  # noqa: F401
    import torch

    torch.set_num_threads(1)


def _arguments() -> Any:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--packages", nargs="+", default=PACKAGES, help="folders of src/semprola to make mistakes in")
    parser.add_argument("--folders", nargs="+", default=FOLDERS, help="folders of tests to find them with")
    parser.add_argument("--count", type=int, default=210, help="how many mutants")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--extensive", action="store_true", help="try the survivors on the tests of make test-all")
    parser.add_argument("--minutes", type=float, default=60, help="stop after this many minutes")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="CPU seconds of tests a mutant")
    return parser.parse_args()


if __name__ == "__main__":
    main()
