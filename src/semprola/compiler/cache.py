"""Previously compiled circuits: in the memory of this process, and on disk for all processes.

The name of a file on disk is a hash of what was compiled. A file appears complete or not at all, it is checked whenever
it is read, and damaged files are deleted, so whatever a killed process leaves behind does no harm.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import sys
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

from semprola._files import write_atomically
from semprola._version import __version__
from semprola.circuit import Circuit, storage
from semprola.compiler.backends.topdown.native import native_library
from semprola.errors import FormatError

WORTH_SECONDS = 0.2
"""A circuit is kept on disk if compiling it took longer than this."""

_LAYOUT = 1
_REMEMBERED_CIRCUITS, _REMEMBERED_NODES = 128, 5_000_000
_MOST_BYTES = 2 << 30
_SCRAP_SECONDS = 3600.0
_WAIT_SECONDS = 0.05


class Usage(NamedTuple):
    """What the cache on disk holds."""

    folder: Path
    entries: int
    bytes: int


def usage() -> Usage:
    """The location of the cache on disk, and how many circuits and bytes it holds."""
    entries = _entries()
    return Usage(folder(), len(entries), sum(size for _, size, _ in entries))


def clear() -> Usage:
    """Remove all circuits from the cache on disk and from this process; return what was removed from disk."""
    removed = usage()
    memory.forget()
    for path in _files():
        with contextlib.suppress(OSError):
            path.unlink()
    return removed


def folder() -> Path:
    """Where circuits are kept: ``SEMPROLA_CACHE`` if set, otherwise the system's usual place for caches."""
    chosen = os.environ.get("SEMPROLA_CACHE")
    if chosen:
        return Path(chosen).expanduser()
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local"
    elif sys.platform == "darwin":
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / "Library" / "Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "semprola"


class Memory:
    """The circuits of this process; the least recently used are forgotten first."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._circuits: OrderedDict[Any, Circuit] = OrderedDict()
        self._nodes = 0

    def find(self, key: Any) -> Circuit | None:
        """The circuit kept under a key."""
        with self._lock:
            circuit = self._circuits.get(key)
            if circuit is not None:
                self._circuits.move_to_end(key)
            return circuit

    def keep(self, key: Any, circuit: Circuit) -> None:
        """Keep a circuit; forget old ones if there are too many."""
        with self._lock:
            replaced = self._circuits.pop(key, None)
            self._circuits[key] = circuit
            self._nodes += circuit.num_nodes - (replaced.num_nodes if replaced is not None else 0)
            while len(self._circuits) > _REMEMBERED_CIRCUITS or (
                self._nodes > _REMEMBERED_NODES and len(self._circuits) > 1
            ):
                self._nodes -= self._circuits.popitem(last=False)[1].num_nodes

    def forget(self) -> None:
        """Forget all circuits."""
        with self._lock:
            self._circuits.clear()
            self._nodes = 0


memory = Memory()


class Entry:
    """One place in the cache on disk."""

    def __init__(self, digest: str, labels: tuple[str, ...], given: tuple[str, ...], *options: str) -> None:
        self.labels, self.given = labels, given
        parts = (digest, labels, given, options, _software())
        self.key = hashlib.sha256(repr(parts).encode("utf-8", "surrogatepass")).hexdigest()
        self.path = folder() / self.key[:2] / f"{self.key}.sp"

    def load(self) -> Circuit | None:
        """The circuit, or None if there is no valid one; a damaged file is removed."""
        try:
            data = self.path.read_bytes()
        except OSError:
            return None
        try:
            circuit = storage.loads(data, str(self.path))
            if circuit.info.get("key") != self.key or (circuit.labels, circuit.given) != (self.labels, self.given):
                raise FormatError(f"{self.path}: its content does not match its name")
        except FormatError:
            with contextlib.suppress(OSError):
                self.path.unlink()
            return None
        about = {name: value for name, value in circuit.info.items() if name != "key"}
        with contextlib.suppress(OSError):
            os.utime(self.path)  # the least recently used entry goes first
        return circuit.with_info({**about, "cached": "on disk"})

    def keep(self, circuit: Circuit) -> None:
        """Write the circuit; a full or read-only disk is no reason to fail."""
        data = storage.dumps(circuit.with_info({**circuit.info, "key": self.key}))
        if len(data) > _most_bytes() // 2:
            return
        with contextlib.suppress(OSError):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(self.path, data)
            _evict()

    @contextlib.contextmanager
    def lock(self, waiting: Callable[[], None]) -> Iterator[None]:
        """Lock this entry, so that a second process waits for the first instead of doing the same work.

        The lock disappears with the process that holds it, however that ends. On systems without such locks both
        processes work, and the last to finish writes the same circuit again.
        """
        path = self.path.with_suffix(".lock")
        handle = None
        try:
            handle = _locked(path, waiting)
            yield
        finally:
            if handle is not None:
                with contextlib.suppress(OSError):
                    path.unlink()
                os.close(handle)


def _locked(path: Path, waiting: Callable[[], None]) -> int | None:
    try:
        import fcntl
    except ImportError:
        return None
    while True:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError:
            return None
        try:
            while True:
                try:
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    waiting()
                    time.sleep(_WAIT_SECONDS)
            # the last holder removes the file, and a lock on a file without a name locks nobody out
            if os.path.samestat(os.fstat(handle), os.stat(path)):
                return handle
            os.close(handle)
        except FileNotFoundError:
            os.close(handle)
        except OSError:
            os.close(handle)
            return None
        except BaseException:
            os.close(handle)
            raise


@functools.lru_cache(maxsize=1)
def _software() -> tuple[object, ...]:
    """Everything about this installation that may change a result."""
    # during development the code changes but the version does not
    sources = sorted(Path(__file__).parent.parent.rglob("*.py"))
    files = tuple((source.name, source.stat().st_size, source.stat().st_mtime_ns) for source in sources)
    return (__version__, storage.VERSION, _LAYOUT, native_library() is not None, *files)


def _files() -> list[Path]:
    try:
        return [path for path in folder().glob("[0-9a-f][0-9a-f]/*") if path.is_file()] + [
            path for path in folder().glob("[0-9a-f][0-9a-f]/.*") if path.is_file()
        ]
    except OSError:
        return []


def _entries() -> list[tuple[float, int, Path]]:
    """The last use, size and path of each entry, the least recently used first."""
    found = []
    for path in _files():
        with contextlib.suppress(OSError):
            status = path.stat()
            if path.suffix == ".sp" and not path.name.startswith("."):
                found.append((status.st_mtime, status.st_size, path))
            elif time.time() - status.st_mtime > _SCRAP_SECONDS:
                path.unlink()  # left by a process that was killed while writing or waiting
    return sorted(found)


def _evict() -> None:
    entries = _entries()
    total = sum(size for _, size, _ in entries)
    for _, size, path in entries:
        if total <= _most_bytes():
            return
        with contextlib.suppress(OSError):
            path.unlink()
        total -= size


def _most_bytes() -> int:
    """The largest size of the cache on disk."""
    try:
        return max(0, int(os.environ["SEMPROLA_CACHE_BYTES"]))
    except (KeyError, ValueError):
        return _MOST_BYTES
