"""The server's worker processes: started when needed, killed if a request takes too long."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import shutil
import signal
import sys
import tempfile
from pathlib import Path
from typing import Any

from semprola.playground.limits import Limits

_LINE_BYTES = 32 * 2**20
"""Longest answer of a worker, in bytes."""
_START_SECONDS = 120.0


class Pool:
    """A few processes that answer requests, one request each at a time.

    The pool survives whatever a request makes a process do: a process that is still busy some seconds after its time
    limit is killed with all its children, and the next request gets a new one.
    """

    def __init__(self, limits: Limits, folder: Path | None = None, data: Path | None = None) -> None:
        self.limits = limits
        self._folder, self._data = folder, data
        self._scratch: str | None = None
        self._workers: list[_Worker] = []
        self._free = asyncio.Condition()
        self._waiting = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self.stopping = asyncio.Event()

    async def start(self) -> None:
        """Start the first process in the background, so that the first request waits less."""
        # compilers write temporary files; our own folder is removed at the end even if a compiler was killed
        self._scratch = tempfile.mkdtemp(prefix="semprola-playground-")
        self._loop = asyncio.get_running_loop()
        self._in_background(self._warm_up())

    def stop_soon(self) -> None:
        """End all waiting requests without an answer; may be called from a signal handler."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self.stopping.set)

    async def close(self) -> None:
        """Kill all processes and remove their temporary files."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.gather(*(worker.kill() for worker in self._workers))
        self._workers.clear()
        if self._scratch is not None:
            shutil.rmtree(self._scratch, ignore_errors=True)

    async def ask(self, message: dict[str, Any]) -> dict[str, Any]:
        """Send a request to a process and wait for its answer: ``{"result": …}`` or ``{"error": …}``.

        If the caller is cancelled, the process is told to stop, and is free again once it has.
        """
        key = json.dumps(message.get("source"), sort_keys=True)
        worker = await self._acquire(key)
        if worker is None:
            return _error("busy", "The playground is busy with other tabs. Try again in a moment.")
        try:
            await worker.ready()
        except (asyncio.TimeoutError, TimeoutError, OSError, _LostError):
            await self._discard(worker)
            return _error("internal", "A worker process did not start. Is semprola fully installed?")
        except asyncio.CancelledError:  # the worker keeps starting, for the next request
            await self._release(worker)
            raise
        asked = asyncio.ensure_future(worker.ask(message))
        try:
            answer = await asyncio.wait_for(asyncio.shield(asked), self.limits.seconds + self.limits.grace)
        except asyncio.CancelledError:
            worker.cancel()
            self._in_background(self._retire(worker, asked))
            raise
        except (asyncio.TimeoutError, TimeoutError):
            asked.cancel()
            await self._discard(worker)
            return _error("budget", f"This took more than {self.limits.seconds:g} seconds and was stopped.", "time")
        except _LostError:
            await self._discard(worker)
            return _error("budget", "This needs more memory than the playground allows, and was stopped.", "memory")
        worker.remember(key, self.limits.subjects)
        await self._release(worker)
        return answer

    # inside ---------------------------------------------------------------------------------------------------------

    async def _acquire(self, key: str) -> _Worker | None:
        """A free process, preferably one that has seen the same source; None if too many requests are waiting."""
        async with self._free:
            if self._waiting >= self.limits.waiting:
                return None
            self._waiting += 1
            try:
                while True:
                    self._workers = [worker for worker in self._workers if worker.busy or not worker.has_ended]
                    idle = [worker for worker in self._workers if not worker.busy]
                    worker = next((worker for worker in idle if key in worker.keys), idle[0] if idle else None)
                    if worker is None and len(self._workers) < self.limits.workers:
                        worker = _Worker(self._setup())
                        self._workers.append(worker)
                    if worker is not None:
                        worker.busy = True
                        return worker
                    await self._free.wait()
            finally:
                self._waiting -= 1

    async def _release(self, worker: _Worker) -> None:
        async with self._free:
            worker.busy = False
            self._free.notify()

    async def _discard(self, worker: _Worker) -> None:
        await worker.kill()
        async with self._free:
            if worker in self._workers:
                self._workers.remove(worker)
            self._free.notify()

    async def _retire(self, worker: _Worker, asked: asyncio.Future[dict[str, Any]]) -> None:
        """After a cancelled request: wait until the process has stopped working on it, or kill it."""
        try:
            await asyncio.wait_for(asked, self.limits.grace)
        except (asyncio.TimeoutError, TimeoutError, _LostError):
            await self._discard(worker)
        else:
            await self._release(worker)

    async def _warm_up(self) -> None:
        worker = await self._acquire("")
        if worker is not None:
            with contextlib.suppress(_LostError, OSError, asyncio.TimeoutError, TimeoutError):
                await worker.ready()
            await self._release(worker)

    def _in_background(self, work: Any) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _setup(self) -> dict[str, Any]:
        return {
            "limits": self.limits.to_json(),
            "folder": None if self._folder is None else str(self._folder),
            "data": None if self._data is None else str(self._data),
            "scratch": self._scratch,
        }


class _LostError(Exception):
    """The process ended before it answered."""


class _Worker:
    """One process and the conversation with it."""

    _numbers = itertools.count(1)

    def __init__(self, setup: dict[str, Any]) -> None:
        self.busy = False
        self.keys: dict[str, None] = {}
        self._setup = setup
        self._process: asyncio.subprocess.Process | None = None
        self._started: asyncio.Future[None] | None = None
        self._current = 0

    @property
    def has_ended(self) -> bool:
        """Whether the process was started and has ended."""
        return self._process is not None and self._process.returncode is not None

    def remember(self, key: str, most: int) -> None:
        """Note what the process has compiled; it keeps the last `most`."""
        self.keys.pop(key, None)
        self.keys[key] = None
        while len(self.keys) > most:
            del self.keys[next(iter(self.keys))]

    async def ready(self) -> None:
        """Start the process, if necessary, and wait until it listens."""
        if self._started is None:
            self._started = asyncio.ensure_future(self._start())
        await asyncio.shield(self._started)

    async def ask(self, message: dict[str, Any]) -> dict[str, Any]:
        self._current = next(self._numbers)
        self._send({**message, "id": self._current})
        while True:
            answer = await self._receive()
            if answer.pop("id", None) == self._current:
                return answer

    def cancel(self) -> None:
        self._send({"cancel": self._current})

    async def kill(self) -> None:
        if self._started is not None and not self._started.done():
            self._started.cancel()
        process = self._process
        if process is None:
            return
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if hasattr(os, "killpg"):
                os.killpg(process.pid, signal.SIGKILL)  # the process leads its own group
            else:
                process.kill()
        await process.wait()

    async def _start(self) -> None:
        environment = os.environ | {"PYTHONSAFEPATH": "1", "OMP_NUM_THREADS": "1"}
        scratch = self._setup["scratch"]
        if scratch is not None:
            environment |= {"TMPDIR": scratch, "SEMPROLA_CACHE": os.path.join(scratch, "cache")}
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "semprola.playground.worker",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env=environment,
            limit=_LINE_BYTES,
            start_new_session=True,  # Ctrl-C goes to the server only, which then ends its workers
        )
        self._send(self._setup)
        await asyncio.wait_for(self._receive(), _START_SECONDS)

    def _send(self, message: dict[str, Any]) -> None:
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.write(json.dumps(message).encode() + b"\n")

    async def _receive(self) -> dict[str, Any]:
        if self._process is None or self._process.stdout is None:
            raise _LostError
        try:
            line = await self._process.stdout.readline()
            answer = json.loads(line) if line else None
        except (ValueError, ConnectionError):
            raise _LostError from None
        if not isinstance(answer, dict):
            raise _LostError
        return answer


def _error(kind: str, message: str, resource: str | None = None) -> dict[str, Any]:
    return {"error": {"kind": kind, "message": message, **({} if resource is None else {"resource": resource})}}
