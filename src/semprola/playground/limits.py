"""Limits on what a request from the page may use."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Limits:
    """Bounds on everything that the page can ask for.

    Attributes:
        seconds: time for one compilation or one answer.
        grace: additional seconds before a process that does not stop by itself is killed.
        nodes: nodes of a circuit, and of the compiler at any time.
        memory: bytes that a compilation may add.
        process_memory: bytes that a worker process may use in total, where the system can enforce it.
        labels: labels of a constraint.
        text: characters of the rules.
        body: bytes of a request.
        workers: number of processes that answer requests.
        waiting: number of requests that may wait for a process.
        subjects: number of circuits and models that a process keeps.
    """

    seconds: float = 10.0
    grace: float = 3.0
    nodes: int = 100_000
    memory: int = 2**30
    process_memory: int = 4 * 2**30
    labels: int = 512
    text: int = 20_000
    body: int = 256 * 1024
    workers: int = 2
    waiting: int = 16
    subjects: int = 8

    def to_json(self) -> dict[str, Any]:
        """As plain data; ``Limits(**data)`` is the way back."""
        return asdict(self)
