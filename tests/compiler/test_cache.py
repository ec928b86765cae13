"""The cache on disk: it works across processes, survives damage, kills and concurrent use, and keeps to its size."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path
from typing import Any

import networkx as nx
import pytest

import semprola as sp
from semprola.compiler import cache, truth_table
from semprola.compiler.digest import _stable, formula_digest

COUNT = "import semprola as sp; c = sp.compile({}); print(c.model_count(), c.info.get('cached', 'fresh'))"
SLOW = "sp.constraints.permutation(13)"
SLOW_COUNT = 6227020800


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SEMPROLA_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(cache, "memory", cache.Memory())
    monkeypatch.setattr(cache, "WORTH_SECONDS", 0.0)
    monkeypatch.setattr(truth_table, "_MOST_LABELS", 0)  # small formulas are never worth a file
    return tmp_path / "cache"


def forget(monkeypatch: pytest.MonkeyPatch) -> None:
    """Act as if in another process."""
    monkeypatch.setattr(cache, "memory", cache.Memory())


def entries(folder: Path) -> list[Path]:
    return sorted(folder.glob("*/*.sp"))


def elsewhere(source: str, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", COUNT.format(source)],
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


class TestHits:
    def test_a_circuit_comes_back_equal(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        made = sp.compile("(a | b) & c", labels=["c", "b", "a"])
        forget(monkeypatch)
        again = sp.compile("(a | b) & c", labels=["c", "b", "a"])
        assert again == made
        assert again is not made
        assert again.info["cached"] == "on disk"
        assert again.info["backend"] == made.info["backend"]
        assert len(entries(folder)) == 1

    def test_everything_that_matters_is_in_the_name(self, folder: Path) -> None:
        sp.compile("a | b")
        sp.compile("b | a")
        sp.compile("a | b", labels=["b", "a"])
        sp.compile("a | b", given=["a"])
        sp.compile("a | b", backend="sdd")
        sp.compile("a | b", labels=["a", "b", "c"])
        assert len(entries(folder)) == 6

    def test_turned_off(self, folder: Path) -> None:
        sp.compile("a | b", cache=False)
        assert not folder.exists()

    def test_what_is_quick_stays_in_memory(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(cache, "WORTH_SECONDS", 10.0)
        assert sp.compile("a | b") is sp.compile("a | b")
        assert not entries(folder)

    def test_families_from_elsewhere_are_not_kept(self, folder: Path) -> None:
        class Odd(sp.constraints.Permutation):
            pass

        sp.compile(Odd("permutation", 2, ("a", "b", "c", "d"), (), False))
        assert not entries(folder)

    def test_a_folder_that_cannot_be_written(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "file").write_text("in the way")
        monkeypatch.setenv("SEMPROLA_CACHE", str(tmp_path / "file" / "below"))
        assert sp.compile("a | b").model_count() == 3
        assert cache.usage().entries == 0

    def test_where_it_is(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.delenv("SEMPROLA_CACHE")
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
        if sys.platform != "win32":
            assert cache.folder() == tmp_path / "semprola"


class TestDamage:
    @pytest.mark.parametrize("how", ["cut", "flip", "empty", "other", "text"])
    def test_is_noticed_and_repaired(self, how: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        right = sp.compile("(a | b) & (b | c)").enumerate().tolist()
        other = sp.compile("(a | b) & (b & c)", labels=["a", "b", "c"])
        forget(monkeypatch)
        for path in entries(folder):
            data = bytearray(path.read_bytes())
            if how == "cut":
                data = data[: len(data) // 2]
            elif how == "flip":
                data[data.index(b"\x93NUMPY", data.index(b"children.npy")) + 128] ^= 1
            elif how == "empty":
                data = bytearray()
            elif how == "text":
                data = bytearray(b"not a circuit")
            path.write_bytes(data)
        if how == "other":  # a valid entry under a wrong name
            other.save(entries(folder)[0])
            other.save(entries(folder)[1])
        again = sp.compile("(a | b) & (b | c)")
        assert again.enumerate().tolist() == right
        assert "cached" not in again.info
        forget(monkeypatch)
        assert sp.compile("(a | b) & (b | c)").info["cached"] == "on disk"

    def test_fuzzed_entries(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        rng = random.Random(0)
        formula = "exactly(2, a, b, c, d) & (a -> b)"
        count = sp.compile(formula).model_count()
        (path,) = entries(folder)
        whole = path.read_bytes()
        for _ in range(100):
            data = bytearray(whole)
            for _ in range(rng.randint(1, 4)):
                data[rng.randrange(len(data))] = rng.randrange(256)
            path.write_bytes(data)
            forget(monkeypatch)
            assert sp.compile(formula).model_count() == count


class TestSize:
    def test_the_least_recently_used_go_first(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        sp.compile("a0 | b")
        size = cache.usage().bytes
        monkeypatch.setenv("SEMPROLA_CACHE_BYTES", str(int(size * 3.5)))
        for i in range(1, 6):
            for age, path in enumerate(sorted(entries(folder), key=lambda p: p.stat().st_mtime, reverse=True)):
                os.utime(path, (time.time() - 10 * (age + 1),) * 2)
            sp.compile(f"a{i} | b")
        assert cache.usage().entries == 3
        forget(monkeypatch)
        assert sp.compile("a5 | b").info["cached"] == "on disk"
        assert "cached" not in sp.compile("a0 | b").info

    def test_usage_and_clear(self, folder: Path) -> None:
        sp.compile("a | b")
        sp.compile("a | c")
        (folder / "ab").mkdir(exist_ok=True)
        scrap = folder / "ab" / ".half-written.0011"
        scrap.write_bytes(b"x")
        assert cache.usage().entries == 2
        assert scrap.exists()
        os.utime(scrap, (0, 0))
        cache.usage()
        assert not scrap.exists()
        assert cache.clear().entries == 2
        assert cache.usage() == (folder, 0, 0)


class TestProcesses:
    @pytest.mark.skipif(sys.platform == "win32", reason="no file locks there: both would work")
    @pytest.mark.extensive
    def test_two_at_once_do_the_work_once(self) -> None:
        both = [elsewhere(SLOW) for _ in range(2)]
        outputs = sorted(process.communicate()[0].strip() for process in both)
        assert outputs[0].startswith(str(SLOW_COUNT))
        assert outputs[1].startswith(str(SLOW_COUNT))
        assert [output.split()[1] for output in outputs] in (["fresh", "on"], ["fresh", "fresh"])
        assert cache.usage().entries == 1
        assert sp.compile(sp.constraints.permutation(13)).info["cached"] == "on disk"

    def test_waiting_counts_against_the_time(self, monkeypatch: pytest.MonkeyPatch) -> None:
        pytest.importorskip("fcntl")
        rule = sp.constraints.hierarchy([("a", "b")])
        entry = cache.Entry(formula_digest(rule) or "", ("a", "b"), (), "auto")
        with entry.lock(lambda: None), pytest.raises(sp.CompilationBudgetError, match="time budget"):
            sp.compile(rule, timeout=0.3)
        assert sp.compile(rule, timeout=5).model_count() == 3

    def test_threads(self) -> None:
        with ThreadPoolExecutor(8) as pool:
            made = list(pool.map(lambda i: sp.compile(f"exactly({i % 3}, a, b, c, d)").model_count(), range(24)))
        assert made == [1, 4, 6] * 8

    @pytest.mark.extensive
    def test_killed_at_any_moment_it_stays_right(self, folder: Path) -> None:
        """A process that keeps compiling is killed 50 times at random moments."""
        work = (
            "cache.WORTH_SECONDS = 0.0\n"
            "while True:\n"
            "    for n in (3, 4, 5, 6):\n"
            "        sp.compile(sp.constraints.permutation(n))\n"
            "        cache.memory.forget()\n"
            "    cache.clear()\n"
        )
        fork = (
            "import os, signal, time, random\n"
            "import semprola as sp\n"
            "from semprola.compiler import cache\n"
            f"work = {work!r}\n"
            "rng = random.Random(0)\n"
            "for i in range(50):\n"
            "    pid = os.fork()\n"
            "    if pid == 0:\n"
            "        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)\n"
            "        exec(work)\n"
            "    time.sleep(rng.random() * 0.05)\n"
            "    os.kill(pid, signal.SIGKILL)\n"
            "    os.waitpid(pid, 0)\n"
            "    for n, count in ((3, 6), (4, 24), (5, 120), (6, 720)):\n"
            "        cache.memory.forget()\n"
            "        assert sp.compile(sp.constraints.permutation(n), timeout=20).model_count() == count\n"
            "print('done', i + 1)\n"
        )
        if not hasattr(os, "fork"):
            pytest.skip("needs fork")
        done = subprocess.run([sys.executable, "-c", fork], capture_output=True, text=True, timeout=240)
        assert done.stdout.split() == ["done", "50"], done.stderr[-2000:]


class TestDigest:
    def test_is_the_same_in_another_process(self) -> None:
        source = (
            "C = sp.constraints\n"
            "made = [formula_digest(k) for k in (sp.parse('a & b -> exactly(1, c, d)'), C.hierarchy([('a', 'b')]),"
            "C.simple_paths(nx.grid_2d_graph(3, 3), source=(0, 0), target=(2, 2)), C.regex('a*b', length=3),"
            "C.linear({'x': 2, 'y': 0.5}, '<=', 2), C.table([[0, 1]], labels=['p', 'q']), C.permutation(4),"
            "C.spanning_trees(nx.path_graph(3)), sp.from_dimacs('p cnf 1 1\\n1 0\\n'))]\n"
        )
        here: dict[str, Any] = {"sp": sp, "nx": nx, "formula_digest": formula_digest}
        exec(source, here)
        there = subprocess.run(
            [
                sys.executable,
                "-c",
                "import semprola as sp, networkx as nx\n"
                "from semprola.compiler.digest import formula_digest\n" + source + "print(made)",
            ],
            env={**os.environ, "PYTHONHASHSEED": "5"},
            capture_output=True,
            text=True,
            check=True,
        )
        assert there.stdout.strip() == str(here["made"])
        assert None not in here["made"]

    def test_tells_formulas_apart(self) -> None:
        a, b = sp.Bools("a b")
        made: list[Any] = [a, ~a, a & b, a | b, b & a, a >> b, a ^ b, sp.Iff(a, b), sp.exactly(1, [a, b])]
        made += [sp.at_most(1, [a, b]), sp.Bool("a b"), sp.Bool("ab"), sp.And(a, a, b), a & (a & b)]
        made += [sp.constraints.hierarchy([("a", "b")]), sp.constraints.hierarchy([("b", "a")])]
        assert len({formula_digest(formula) for formula in made}) == len(made)

    def test_keys(self) -> None:
        keys: list[Any] = [
            1,
            True,
            1.0,
            "1",
            b"1",
            None,
            (1,),
            ((1,),),
            (1, 1),
            frozenset([1]),
            Fraction(1),
            (),
            ("", ""),
        ]
        keys += [("a,b",), ("a", "b"), frozenset(["a", "b"]), frozenset(["ab"]), (frozenset(), ()), ((), frozenset())]
        assert len({_stable(key) for key in keys}) == len(keys)
        assert _stable(frozenset(["a", "b"])) == _stable(frozenset(["b", "a"]))
        assert _stable((nx.Graph(),)) is None
