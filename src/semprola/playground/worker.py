"""A worker process: reads requests from standard input, one JSON object per line, and writes one answer for each.

The first line is the configuration. A line ``{"cancel": id}`` stops the compilation for that request. The process exits
as soon as its standard input ends, whatever it is doing.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import shutil
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

if TYPE_CHECKING:
    from semprola.compiler import Progress
    from semprola.playground.workshop import Workshop

_ACTIONS = ("describe", "answer", "sample", "python", "row", "review", "learn")
_WARM_UP = {"source": {"problem": {"structure": "none", "size": 0, "text": "a -> b"}}, "beliefs": [0.5, 0.5]}


def main() -> None:
    """Serve until standard input ends."""
    incoming, outgoing = _private_streams()
    setup = json.loads(incoming.readline() or b"{}")
    inbox = _Inbox(incoming, setup.get("scratch"))
    _bound_memory(setup["limits"]["process_memory"])
    workshop = _workshop(setup, inbox)
    _reply(outgoing, {"ready": os.getpid()})
    while True:
        request = inbox.next()
        answer = _answer(workshop, request)
        _reply(outgoing, {"id": request.get("id"), **answer})


class _Inbox:
    """Requests in order, read by a separate thread, so that the end of input is noticed at any time."""

    def __init__(self, incoming: BinaryIO, scratch: str | None) -> None:
        self._incoming, self._scratch = incoming, scratch
        self._requests: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        self._current: Any = None
        self._cancelled: set[Any] = set()
        threading.Thread(target=self._read, daemon=True).start()

    def next(self) -> dict[str, Any]:
        request = self._requests.get()
        self._current = request.get("id")
        return request

    def stop_if_cancelled(self, progress: Progress) -> None:
        """A progress callback that stops a cancelled compilation."""
        if self._current in self._cancelled:
            raise _CancelledError

    def _read(self) -> None:
        for line in self._incoming:
            request = json.loads(line)
            if "cancel" in request:
                self._cancelled.add(request["cancel"])
            else:
                self._requests.put(request)
        if self._scratch is not None:  # the server cleans up after itself, unless it was killed
            shutil.rmtree(self._scratch, ignore_errors=True)
        os._exit(0)


class _CancelledError(Exception):
    """Nobody is waiting for the answer any more."""


def _workshop(setup: dict[str, Any], inbox: _Inbox) -> Workshop:
    import torch

    from semprola.playground.limits import Limits
    from semprola.playground.workshop import Workshop

    torch.set_num_threads(1)
    folder, data = setup.get("folder"), setup.get("data")
    workshop = Workshop(
        Limits(**setup["limits"]),
        None if folder is None else Path(folder),
        None if data is None else Path(data),
        inbox.stop_if_cancelled,
    )
    # the first use of torch is slow, so do it now, before somebody waits for an answer
    for evidence in ("--", "1-"):
        workshop.describe(_WARM_UP)
        workshop.answer({**_WARM_UP, "evidence": evidence})
    return workshop


def _answer(workshop: Workshop, request: dict[str, Any]) -> dict[str, Any]:
    from semprola.errors import CompilationBudgetError, ParseError, SemprolaError, UnsatisfiableError
    from semprola.playground.problems import RequestError

    actions = {name: getattr(workshop, name) for name in _ACTIONS}
    try:
        return {"result": actions[request["do"]](request)}
    except ParseError as error:
        return {"error": _parse_error(error)}
    except (CompilationBudgetError, MemoryError) as error:
        resource = getattr(error, "resource", None) or "memory"
        return {"error": {"kind": "budget", "message": _budget_text(resource, workshop), "resource": resource}}
    except UnsatisfiableError as error:
        return {"error": {"kind": "unsatisfiable", "message": str(error), "rules": [str(rule) for rule in error.rules]}}
    except RequestError as error:
        return {"error": {"kind": "request", "message": str(error)}}
    except (SemprolaError, OSError, ValueError) as error:
        return {"error": {"kind": "input", "message": str(error)}}
    except _CancelledError:
        return {"error": {"kind": "cancelled", "message": "cancelled"}}
    except Exception as error:
        return {"error": {"kind": "internal", "message": f"{type(error).__name__}: {error}"[:500]}}


def _parse_error(error: Any) -> dict[str, Any]:
    message, *excerpt = str(error).split("\n")
    place, _, rest = message.partition(": ")
    text = rest if place.startswith("at ") else message
    return {
        "kind": "parse",
        "message": text,
        "line": error.line,
        "column": error.column,
        "excerpt": "\n".join(excerpt),
    }


def _budget_text(resource: str, workshop: Workshop) -> str:
    limits = workshop.limits
    used = {
        "time": f"they take more than {limits.seconds:g} seconds",
        "nodes": f"they need more than {limits.nodes:,} nodes",
        "memory": "they need too much memory",
    }
    return (
        f"These rules are too large for the playground: {used.get(resource, resource)}. Leave some out. Outside of it, "
        "semprola.compile and semprola.split have no limits unless you set some."
    )


def _bound_memory(most: int) -> None:
    """Have the system refuse more memory than this, where possible, so that excess causes an error, not swapping."""
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
        bound = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(resource.RLIMIT_DATA, (bound, hard))
        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))


def _private_streams() -> tuple[BinaryIO, BinaryIO]:
    """Standard input and output under other file descriptors, so that stray prints cannot disturb the conversation."""
    incoming, outgoing = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(2, 1)
    os.close(null)
    return incoming, outgoing


def _reply(outgoing: BinaryIO, message: dict[str, Any]) -> None:
    try:
        outgoing.write(json.dumps(message, allow_nan=False).encode() + b"\n")
        outgoing.flush()
    except BrokenPipeError:  # the server is gone; the inbox thread cleans up
        sys.exit(0)


if __name__ == "__main__":
    main()
