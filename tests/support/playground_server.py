"""A playground server in a process of its own, as a user starts it, and a plain client to talk to it."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

PATIENCE = 120.0
"""Seconds for what takes a few on a quiet machine."""


class Server:
    """`semprola playground --no-open` until `stop`.

    Args:
        arguments: further arguments.
        port: where to listen; 0 for any free port.
        environment: what to add to the environment.
    """

    def __init__(self, *arguments: str, port: int = 0, environment: dict[str, str] | None = None) -> None:
        command = [sys.executable, "-m", "semprola", "playground", "--no-open", "--port", str(port), *arguments]
        self.process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONUNBUFFERED": "1", **(environment or {})},
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        found = re.search(r"http://127\.0\.0\.1:(\d+)/", line)
        if found is None:
            self.process.kill()
            raise AssertionError(f"the server did not start: {line!r}, {self.process.communicate()[1]}")
        self.port = int(found[1])
        self.url = f"http://127.0.0.1:{self.port}/"

    def request(
        self, method: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None
    ) -> tuple[int, dict[str, str], bytes]:
        """Status, headers (in lower case) and body of the answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            connection.putrequest(method, path, skip_host=True)
            sent = {"Host": f"127.0.0.1:{self.port}", "Content-Length": str(len(body or b"")), **(headers or {})}
            for name, value in sent.items():
                connection.putheader(name, value)
            connection.endheaders(body or None)
            response = connection.getresponse()
            return response.status, {name.lower(): value for name, value in response.getheaders()}, response.read()
        finally:
            connection.close()

    def ask(self, action: str, **content: Any) -> dict[str, Any]:
        """Post a request of the page and return the JSON of the answer, of whatever status."""
        body = json.dumps(content).encode()
        _, _, answer = self.request("POST", f"/api/{action}", body, {"Content-Type": "application/json"})
        found: dict[str, Any] = json.loads(answer)
        return found

    def workers(self) -> list[int]:
        """The ids of the worker processes, where the system tells."""
        task = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        return [int(word) for word in task.read_text().split()] if task.exists() else []

    def stop(self, how: signal.Signals = signal.SIGINT) -> tuple[int, str]:
        """End it; the exit status and what it wrote to standard error."""
        if self.process.poll() is None:
            self.process.send_signal(how)
        _, errors = self.process.communicate(timeout=PATIENCE)
        return self.process.returncode, errors


def problem(text: str = "", structure: str = "none", size: int = 0) -> dict[str, Any]:
    """The source of a request: rules, a structure, or both."""
    return {"problem": {"structure": structure, "size": size, "text": text}}
