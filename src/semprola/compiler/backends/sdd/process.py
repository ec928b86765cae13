"""The child process for PySDD: started when first needed, given one request at a time, killed on demand."""

from __future__ import annotations

import atexit
import contextlib
import importlib.util
import os
import pickle
import queue
import signal
import struct
import subprocess
import sys
import threading
from array import array
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from semprola.compiler.budget import Budget, Resource
from semprola.errors import SemprolaError

Arrays = dict[str, npt.NDArray[Any]]

_WORKER = Path(__file__).with_name("worker.py")
_MOST_KEPT = 1 << 29  # a worker that has grown beyond this is not reused
_BYTES_PER_NODE = 4096  # generous: it only has to stop a single runaway operation under a node budget
_SLACK = 1 << 28
_PATIENCE = 0.25


def request(
    library: str, header: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]], budget: Budget, phase: str
) -> Arrays:
    """Send one request to the worker and wait for its answer.

    If anything ends the wait early (the budget, Ctrl-C, an exception in a progress function), the worker is killed at
    once; the next request starts another.

    Args:
        budget: what it may use; without a limit on memory, nine tenths of the machine's memory.
    """
    most = budget.max_nodes
    limit = budget.memory if budget.memory is not None else _machine_memory()
    by_nodes = None if most is None else _SLACK + _BYTES_PER_NODE * most
    out_of_memory: Resource = "memory"
    if by_nodes is not None and (limit is None or by_nodes < limit):
        limit, out_of_memory = by_nodes, "nodes"
    message = {**header, "max_nodes": most, "memory": limit}
    with _waiting_for(_State.lock, budget, phase):
        worker = _State.worker
        if worker is not None and not worker.alive:
            worker.kill()
            worker = None
        if worker is None:
            worker = _State.worker = _Worker()
        try:
            answer, result = worker.ask(message, arrays, budget, phase)
        except _EndedError as ended:
            _State.worker = None
            worker.kill()
            raise _explained(library, ended.status, out_of_memory, budget) from None
        except BaseException:
            _State.worker = None
            worker.kill()
            raise
        if answer["largest"] > _MOST_KEPT:
            _State.worker = None
            worker.kill()
    if "error" in answer:
        raise SemprolaError(f"{library} failed: {answer['error']}")
    if "exceeded" in answer:
        raise budget.error(out_of_memory if answer["exceeded"] == "memory" else "nodes")
    return result


def close_worker() -> None:
    """End the worker, if there is one; the next request starts another."""
    with _State.lock:
        if _State.worker is not None:
            _State.worker.kill()
            _State.worker = None


class _EndedError(Exception):
    """The worker ended before it answered."""

    def __init__(self, status: int) -> None:
        self.status = status


class _Worker:
    """One child process and the conversation with it."""

    def __init__(self) -> None:
        found = importlib.util.find_spec("pysdd")
        if found is None or not found.submodule_search_locations:
            raise SemprolaError("PySDD is not installed: pip install pysdd")
        where = str(Path(next(iter(found.submodule_search_locations))).parent)
        # the system sends a parent-death signal when the starting *thread* ends: only the main thread may ask for one
        main = threading.current_thread() is threading.main_thread()
        # a pipe that is only ever closed: the child ends with this process, whatever it is doing
        life, self.life = os.pipe() if os.name == "posix" else (-1, -1)
        try:
            self.process = subprocess.Popen(
                [sys.executable, "-I", "-S", str(_WORKER), where, str(os.getpid() if main else 0), str(life)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                bufsize=0,  # a fork would copy a buffer and its lock
                pass_fds=(life,) if life >= 0 else (),
            )
        except OSError as error:
            self._close(self.life)
            raise SemprolaError(f"cannot start a Python process for PySDD ({error}): check sys.executable") from error
        finally:
            self._close(life)

    @property
    def alive(self) -> bool:
        return self.process.poll() is None

    def ask(
        self,
        header: Mapping[str, Any],
        arrays: Mapping[str, npt.NDArray[Any]],
        budget: Budget,
        phase: str,
    ) -> tuple[dict[str, Any], Arrays]:
        # not every system can wait for a pipe with a time limit, but a queue filled by a thread works everywhere
        inbox: queue.SimpleQueue[tuple[dict[str, Any], Arrays] | None] = queue.SimpleQueue()
        threading.Thread(target=self._talk, args=(header, arrays, inbox), daemon=True).start()
        nodes = 0
        while True:
            left = budget.seconds_left
            with contextlib.suppress(queue.Empty):
                message = inbox.get(timeout=_PATIENCE if left is None else min(left, _PATIENCE))
                if message is None:
                    raise _EndedError(self._status())
                if "progress" not in message[0]:
                    return message
                nodes = message[0]["progress"]
            # even without a message: a single operation can take long without reporting anything
            budget.watch(phase, nodes)

    def kill(self) -> None:
        """End the child now and wait until it is gone."""
        with contextlib.suppress(ProcessLookupError):
            self.process.kill()
        self.process.wait()
        self._close_pipes()

    def forget(self) -> None:
        """Called in a forked copy of this process: release a child that is not ours."""
        self.process.returncode = 0
        self._close_pipes()

    def _close_pipes(self) -> None:
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
        self._close(self.life)
        self.life = -1

    @staticmethod
    def _close(handle: int) -> None:
        if handle >= 0:
            with contextlib.suppress(OSError):
                os.close(handle)

    def _talk(
        self,
        header: Mapping[str, Any],
        arrays: Mapping[str, npt.NDArray[Any]],
        inbox: queue.SimpleQueue[tuple[dict[str, Any], Arrays] | None],
    ) -> None:
        stdin, stdout = self.process.stdin, self.process.stdout
        if stdin is None or stdout is None:
            inbox.put(None)
            return
        try:
            _send(stdin, header, arrays)
            while True:
                message = _receive(stdout)
                inbox.put(message)
                if "progress" not in message[0]:
                    return
        except (OSError, EOFError, ValueError):
            inbox.put(None)

    def _status(self) -> int:
        try:
            return self.process.wait(timeout=1)
        except subprocess.TimeoutExpired:
            return 0


class _State:
    """State shared by the threads of this process; a forked child starts afresh."""

    lock = threading.Lock()
    worker: _Worker | None = None

    @classmethod
    def at_exit(cls) -> None:
        if cls.worker is not None:
            cls.worker.kill()

    @classmethod
    def after_fork(cls) -> None:
        cls.lock = threading.Lock()
        if cls.worker is not None:
            cls.worker.forget()
            cls.worker = None


atexit.register(_State.at_exit)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_State.after_fork)


@contextlib.contextmanager
def _waiting_for(lock: threading.Lock, budget: Budget, phase: str) -> Iterator[None]:
    """Hold the lock; waiting for another thread's request counts against the time budget."""
    while True:
        left = budget.seconds_left
        if lock.acquire(timeout=_PATIENCE if left is None else min(left, _PATIENCE)):
            break
        budget.watch(phase)
    try:
        yield
    finally:
        lock.release()


def _explained(library: str, status: int, out_of_memory: Resource, budget: Budget) -> SemprolaError:
    """The error that explains why the worker ended."""
    killed = {-getattr(signal, name, 0): name for name in ("SIGKILL", "SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT")}
    if status in killed:
        return SemprolaError(
            f"the {library} process was ended from outside by {killed[status]} (did the machine run out of memory?): "
            "try again, or set memory="
        )
    # if an allocation fails, libsdd exits with status 1
    if status in (1, -getattr(signal, "SIGABRT", 0)) or (status < 0 and out_of_memory == "nodes"):
        return budget.error(out_of_memory)
    if status < 0:
        return SemprolaError(
            f"{library} crashed with {signal.Signals(-status).name}: set memory=, or write the constraint in smaller "
            "parts"
        )
    return SemprolaError(f"the {library} process ended unexpectedly with status {status}: try again")


def _machine_memory() -> int | None:
    """Nine tenths of the machine's memory: PySDD should give up before the machine does."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") * 9 // 10
    except (AttributeError, ValueError, OSError):
        return None


def _send(stream: Any, header: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]) -> None:
    content = pickle.dumps((dict(header), {name: array(v.dtype.char, v.tobytes()) for name, v in arrays.items()}))
    rest = memoryview(struct.pack("<Q", len(content)) + content)
    while rest:
        rest = rest[stream.write(rest) :]


def _receive(stream: Any) -> tuple[dict[str, Any], Arrays]:
    header, arrays = pickle.loads(_exactly(stream, struct.unpack("<Q", _exactly(stream, 8))[0]))
    return header, {name: np.asarray(values) for name, values in arrays.items()}


def _exactly(stream: Any, count: int) -> bytearray:
    data = bytearray(count)
    rest = memoryview(data)
    while rest:
        received = stream.readinto(rest)
        if not received:
            raise EOFError
        rest = rest[received:]
    return data
