"""The process that runs PySDD: a plain script that does not import semprola, started by ``process``.

PySDD cannot be interrupted and ends the interpreter if an allocation fails, so it never runs in the user's process. A
message in either direction is its length in 8 bytes and a pickled pair, a header and arrays by name. A request holds a
vtree and a straight-line program over Boolean functions; the answer holds the sentential decision diagrams of the
program's roots, or says which budget ran out.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import pickle
import select
import signal
import struct
import sys
import tempfile
import threading
import time
from array import array
from typing import Any, BinaryIO

LITERAL, AND, OR, NOT, ITE, CONSTANT = range(6)
"""Operations of a program. LITERAL: a is the signed variable; CONSTANT: a is 0 or 1; ITE: if a then b else c."""

_PROGRESS_SECONDS = 0.2
_GARBAGE = 100_000
_STACK_BYTES = (1 << 30, 1 << 28, 1 << 26)


def main() -> None:
    """Answer requests until the other side closes the pipe."""
    incoming, outgoing = _private_pipes()
    _die_with_parent(int(sys.argv[2]))
    _end_on_hangup(int(sys.argv[3]))
    sys.path.append(sys.argv[1])
    # libsdd recurses over the vtree: a deep vtree needs a large stack, which only a new thread can have
    for size in _STACK_BYTES:
        try:
            threading.stack_size(size)
            thread = threading.Thread(target=_serve, args=(incoming, outgoing))
            thread.start()
        except (ValueError, RuntimeError, MemoryError):
            continue
        thread.join()
        return
    _serve(incoming, outgoing)


def write_message(stream: BinaryIO, header: dict[str, Any], arrays: dict[str, array[int]] | None = None) -> None:
    """Send one message."""
    content = pickle.dumps((header, arrays or {}))
    stream.write(struct.pack("<Q", len(content)) + content)
    stream.flush()


def _private_pipes() -> tuple[BinaryIO, BinaryIO]:
    """Move the two pipes to other file descriptors, because the C library prints errors to standard output."""
    incoming = os.fdopen(os.dup(0), "rb")
    outgoing = os.fdopen(os.dup(1), "wb")
    null = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1):
        os.dup2(null, standard)
    return incoming, outgoing


def _die_with_parent(parent: int) -> None:
    """If the system allows it, end with the parent, and be the first process killed when memory runs out."""
    if not sys.platform.startswith("linux"):
        return
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write("1000")
    if parent:
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
        if os.getppid() != parent:
            os._exit(1)


def _serve(incoming: BinaryIO, outgoing: BinaryIO) -> None:
    with contextlib.suppress(EOFError, BrokenPipeError):
        while True:
            incoming.read(8)
            message: tuple[dict[str, Any], dict[str, array[int]]] = pickle.load(incoming)
            with _address_space(message[0].get("memory")):
                header, arrays = _answer(*message, outgoing)
            write_message(outgoing, header, arrays)


def _end_on_hangup(life: int) -> None:
    """End (the default action of SIGIO) when the parent's end of a pipe closes, even in the middle of a C call.

    Nothing is ever written to this pipe. On a pipe that carries requests, the signal for the last bytes of a request
    could arrive after the request was read, and would end a process that has only just started to work.
    """
    if life < 0:
        return
    try:
        import fcntl

        fcntl.fcntl(life, fcntl.F_SETOWN, os.getpid())
        fcntl.fcntl(life, fcntl.F_SETFL, fcntl.fcntl(life, fcntl.F_GETFL) | os.O_ASYNC)
    except (ImportError, AttributeError, OSError):
        return
    if select.select([life], [], [], 0)[0]:
        os._exit(1)


@contextlib.contextmanager
def _address_space(extra: int | None) -> Any:
    """Allow at most `extra` bytes more than now, if the system has such limits."""
    try:
        import resource

        before = resource.getrlimit(resource.RLIMIT_AS)
        with open("/proc/self/statm") as file:
            now = int(file.read().split()[0]) * resource.getpagesize()
        limit = None if extra is None else now + extra
        if limit is not None and (before[1] == resource.RLIM_INFINITY or limit < before[1]):
            resource.setrlimit(resource.RLIMIT_AS, (limit, before[1]))
    except (ImportError, OSError, ValueError, OverflowError):
        yield
        return
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def _answer(
    header: dict[str, Any], arrays: dict[str, array[int]], outgoing: BinaryIO
) -> tuple[dict[str, Any], dict[str, array[int]]]:
    try:
        from pysdd import sdd

        manager = sdd.SddManager.from_vtree(_vtree(sdd, arrays))
        values = _run(manager, header, arrays, outgoing)
        if values is None:
            return {"exceeded": "nodes", "largest": _largest()}, {}
        if header.get("save"):
            sdd_path, vtree_path = header["save"]
            manager.save(os.fsencode(sdd_path), values[0])
            manager.vtree().save(os.fsencode(vtree_path))
            return {"largest": _largest()}, {}
        result = _flatten(values, manager.var_count())
        return {"largest": _largest()}, result
    except MemoryError:
        return {"exceeded": "memory", "largest": 1 << 62}, {}
    except Exception as error:  # the other process reports whatever goes wrong here
        return {"error": f"{type(error).__name__}: {error}", "largest": 1 << 62}, {}


def _largest() -> int:
    """The most bytes that this process has ever held; a process that has grown large is not reused."""
    # on Linux, the value of getrusage starts at the size of the process that started this one
    with contextlib.suppress(OSError, ValueError, StopIteration), open("/proc/self/status") as file:
        return int(next(line for line in file if line.startswith("VmHWM:")).split()[1]) * 1024
    try:
        import resource
    except ImportError:
        return 0
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def _vtree(sdd: Any, arrays: dict[str, array[int]]) -> Any:
    """The vtree, by way of a file: libsdd has no other way to take a vtree of any shape."""
    lines = [f"vtree {len(arrays['variable'])}"]
    for node, (left, right, variable) in enumerate(
        zip(arrays["left"], arrays["right"], arrays["variable"], strict=True)
    ):
        lines.append(f"L {node} {variable + 1}" if variable >= 0 else f"I {node} {left} {right}")
    handle, path = tempfile.mkstemp(suffix=".vtree")
    try:
        with open(handle, "w") as file:
            file.write("\n".join(lines) + "\n")
        return sdd.Vtree.from_file(path)
    finally:
        os.unlink(path)


def _run(manager: Any, header: dict[str, Any], arrays: dict[str, array[int]], outgoing: BinaryIO) -> list[Any] | None:
    """The functions of the program's roots; None if there were more live nodes than `max_nodes`."""
    op, a, b, c, roots = (arrays[name] for name in ("op", "a", "b", "c", "roots"))
    most = header.get("max_nodes")
    free_after = _last_uses(op, a, b, c, roots)
    conjoin, disjoin, negate = manager.conjoin, manager.disjoin, manager.negate
    live_count, dead_count = manager.live_count, manager.dead_count
    reported = time.monotonic()
    values: list[Any] = [None] * len(op)
    for i, kind in enumerate(op):
        if kind == LITERAL:
            values[i] = manager.literal(a[i])
        elif kind == AND:
            values[i] = conjoin(values[a[i]], values[b[i]])
        elif kind == OR:
            values[i] = disjoin(values[a[i]], values[b[i]])
        elif kind == ITE:
            test = values[a[i]]
            values[i] = disjoin(conjoin(test, values[b[i]]), conjoin(negate(test), values[c[i]]))
        elif kind == NOT:
            values[i] = negate(values[a[i]])
        else:
            values[i] = manager.true() if a[i] else manager.false()
        for last in free_after.get(i, ()):
            values[last] = None
        if most is not None and live_count() > most:
            return None
        if (now := time.monotonic()) - reported > _PROGRESS_SECONDS:
            reported = now
            write_message(outgoing, {"progress": live_count()})
        if i % 16 == 0 and dead_count() > _GARBAGE + 2 * live_count():
            manager.garbage_collect()
    return [values[root] for root in roots]


def _last_uses(op: array[int], a: array[int], b: array[int], c: array[int], roots: array[int]) -> dict[int, list[int]]:
    """For each step, the values that no later step needs."""
    last: dict[int, int] = {}
    for i, kind in enumerate(op):
        if kind in (AND, OR, NOT, ITE):
            last[a[i]] = i
        if kind in (AND, OR, ITE):
            last[b[i]] = i
        if kind == ITE:
            last[c[i]] = i
    for root in roots:
        last.pop(root, None)
    free_after: dict[int, list[int]] = {}
    for value, step in last.items():
        free_after.setdefault(step, []).append(value)
    return free_after


def _flatten(values: list[Any], variables: int) -> dict[str, array[int]]:
    """The decision nodes below the roots, children first, without elements whose sub is false.

    A reference is 0 for true, -1 for false, 2v - 1 and 2v for the literals of variable v, and 2 * variables + 1 + k
    for decision k.
    """
    number: dict[int, int] = {}
    start, prime, sub = array("q", [0]), array("i"), array("i")

    def reference(node: Any) -> int:
        if node.is_decision():
            return number[node.id]
        if node.is_literal():
            literal: int = node.literal
            return 2 * literal - 1 if literal > 0 else -2 * literal
        return 0 if node.is_true() else -1

    stack: list[tuple[Any, Any]] = [(node, None) for node in reversed(values) if node.is_decision()]
    while stack:
        node, elements = stack.pop()
        if node.id in number:
            continue
        if elements is None:
            elements = [(p, s) for p, s in node.elements() if not s.is_false()]
            stack.append((node, elements))
            below = [part for pair in elements for part in pair]
            stack.extend((part, None) for part in below if part.is_decision() and part.id not in number)
            continue
        for p, s in elements:
            prime.append(reference(p))
            sub.append(reference(s))
        start.append(len(prime))
        number[node.id] = 2 * variables + len(start) - 1
    roots = array("i", [reference(node) for node in values])
    return {"start": start, "prime": prime, "sub": sub, "roots": roots}


if __name__ == "__main__":
    main()
