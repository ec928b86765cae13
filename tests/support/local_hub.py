"""A hub for models in this process: the part of Hugging Face's HTTP interface that uploads and downloads need.

Files of each commit are kept in memory; `LocalHub.files` shows those of a branch.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit


class LocalHub(ThreadingHTTPServer):
    """Listens on 127.0.0.1."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        self.commits: dict[str, dict[str, bytes]] = {}
        self.branches: dict[tuple[str, str], str] = {}
        self.asked: list[str] = []

    def files(self, repo: str, revision: str = "main") -> dict[str, bytes]:
        """The files of a branch or a commit."""
        return self.commits[self.branches.get((repo, revision), revision)]

    def commit(self, repo: str, revision: str, files: dict[str, bytes]) -> str:
        """Keep these files as a new commit of a branch."""
        sha = hashlib.sha1(repr((repo, len(self.commits), sorted(files))).encode()).hexdigest()
        self.commits[sha] = files
        self.branches[repo, revision] = sha
        return sha


@contextmanager
def local_hub(monkeypatch: Any, cache: Any) -> Iterator[LocalHub]:
    """A hub that huggingface_hub talks to instead of the real one, with a cache of its own."""
    from huggingface_hub import constants

    server = LocalHub()
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    monkeypatch.setattr(constants, "ENDPOINT", server.url)
    monkeypatch.setattr(
        constants, "HUGGINGFACE_CO_URL_TEMPLATE", server.url + "/{repo_id}/resolve/{revision}/{filename}"
    )
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(cache))
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_PROGRESS_BARS", True)
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    server: LocalHub
    protocol_version = "HTTP/1.1"

    def log_message(self, *args: Any) -> None:
        pass

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        path = unquote(urlsplit(self.path).path)
        self.server.asked.append(f"POST {path}")
        if path == "/api/repos/create":
            asked = json.loads(body)
            repo = f"{asked.get('organization') or 'me'}/{asked['name']}"
            if (repo, "main") in self.server.branches:
                return self._json({"url": f"{self.server.url}/{repo}"}, 409)
            self.server.commit(repo, "main", {})
            return self._json({"url": f"{self.server.url}/{repo}", "name": repo})
        if path == "/api/validate-yaml":
            return self._json({"errors": [], "warnings": []})
        found = re.fullmatch(r"/api/models/([^/]+/[^/]+)/(preupload|commit|branch)/(.+)", path)
        if found is None or (found[1], "main") not in self.server.branches:
            return self._json({"error": "Repository not found"}, 404)
        repo, action, revision = found.groups()
        if action == "branch":
            self.server.branches[repo, revision] = self.server.branches[repo, "main"]
            return self._json({})
        if action == "preupload":
            files = [{**file, "uploadMode": "regular", "shouldIgnore": False} for file in json.loads(body)["files"]]
            return self._json({"files": files})
        files = dict(self.server.files(repo, revision))
        for line in map(json.loads, body.splitlines()):
            value = line["value"]
            if line["key"] == "file":
                files[value["path"]] = base64.b64decode(value["content"])
            elif line["key"] == "deletedFile":
                del files[value["path"]]
        sha = self.server.commit(repo, revision, files)
        return self._json({"commitUrl": f"{self.server.url}/{repo}/commit/{sha}", "commitOid": sha, "success": True})

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        path = unquote(urlsplit(self.path).path)
        self.server.asked.append(f"{self.command} {path}")
        found = re.fullmatch(r"/api/models/([^/]+/[^/]+)(?:/(revision|tree)/([^/]+))?", path)
        if found:
            repo, action, revision = found[1], found[2], found[3] or "main"
            if (repo, "main") not in self.server.branches:
                return self._json({"error": "Repository not found"}, 404, {"X-Error-Code": "RepoNotFound"})
            files = self.server.files(repo, revision)
            listing = [{"type": "file", "path": n, "size": len(c), "oid": _oid(c)} for n, c in files.items()]
            if action == "tree":
                return self._json(listing)
            sha = self.server.branches.get((repo, revision), revision)
            return self._json({"id": repo, "sha": sha, "siblings": [{"rfilename": file["path"]} for file in listing]})
        found = re.fullmatch(r"/([^/]+/[^/]+)/resolve/([^/]+)/(.+)", path)
        if found and found[3] in self.server.files(found[1], found[2]):
            content = self.server.files(found[1], found[2])[found[3]]
            sha = self.server.branches.get((found[1], found[2]), found[2])
            headers = {"ETag": f'"{_oid(content)}"', "X-Repo-Commit": sha, "Accept-Ranges": "bytes"}
            return self._send(content, 200, headers)
        return self._json({"error": "not found"}, 404)

    def _json(self, content: Any, status: int = 200, headers: dict[str, str] | None = None) -> None:
        self._send(json.dumps(content).encode(), status, {"Content-Type": "application/json", **(headers or {})})

    def _send(self, content: bytes, status: int, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)


def _oid(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
