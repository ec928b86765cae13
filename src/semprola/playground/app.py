"""The web application: the page, its files, and the requests that it may send."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from importlib import metadata, resources
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from semprola._version import __version__
from semprola.playground.examples import examples
from semprola.playground.folders import find_models
from semprola.playground.guard import Guard
from semprola.playground.pool import Pool

_TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
_LONGEST_INT = 18
_ACTIONS = ("describe", "answer", "sample", "python", "row", "review", "learn")
_STATUS = {"busy": 503, "request": 400, "internal": 500}
"""Status codes of errors that the user cannot fix; all other errors are answers, which the page shows."""


def build_app(hosts: frozenset[str], pool: Pool, folder: Path | None = None, data: Path | None = None) -> Guard:
    """The application.

    Args:
        hosts: accepted values of the Host header, such as ``127.0.0.1:8700``.
        pool: the processes that do the work; started and closed with the application.
    """
    limits = pool.limits
    about = {
        "version": __version__,
        "examples": examples(),
        "models": list(find_models(folder)),
        "data": None if data is None else data.name,
        "docs": _docs(),
        "limits": {
            "labels": limits.labels,
            "text": limits.text,
            "body": limits.body,
            "seconds": limits.seconds,
            "nodes": limits.nodes,
        },
    }

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        await pool.start()
        try:
            yield
        finally:
            await pool.close()

    async def tell_about(request: Request) -> Response:
        return JSONResponse(about)

    files = _files()

    async def page(request: Request) -> Response:
        return files["index.html"]

    async def file(request: Request) -> Response:
        return files.get(request.path_params["name"]) or Response("not found", 404)

    routes = [
        Route("/", page, methods=["GET"]),
        Route("/static/{name}", file, methods=["GET"]),
        Route("/api/about", tell_about, methods=["GET"]),
        *(Route(f"/api/{action}", _endpoint(action, pool), methods=["POST"]) for action in _ACTIONS),
    ]
    return Guard(Starlette(routes=routes, lifespan=lifespan), hosts)


def _docs() -> str | None:
    """The address of the documentation, if the installed package names one."""
    try:
        named = metadata.metadata("semprola").get_all("Project-URL") or []
    except metadata.PackageNotFoundError:
        return None
    found = (entry.partition(",") for entry in named)
    return next((url.strip() for name, _, url in found if name.strip().lower() == "documentation"), None)


def _files() -> dict[str, Response]:
    """The files of the page by name: only those of the package, so that no request can name a path."""
    found = {}
    for item in resources.files("semprola.playground").joinpath("static").iterdir():
        kind = _TYPES.get(Path(item.name).suffix)
        if kind is not None:
            found[item.name] = Response(item.read_bytes(), media_type=kind)
    return found


def _endpoint(action: str, pool: Pool) -> Any:
    async def answer(request: Request) -> Response:
        content = await _content(request, pool.limits.body)
        if isinstance(content, Response):
            return content
        reply = await _while_wanted(request, pool, pool.ask({**content, "do": action}))
        if reply is None:
            return Response(status_code=503)  # the client is gone
        return JSONResponse(reply, _STATUS.get(reply.get("error", {}).get("kind"), 200))

    return answer


async def _content(request: Request, most: int) -> dict[str, Any] | Response:
    """The JSON object that a request carries, or the response that refuses it."""
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        return _refused("send application/json", 415)
    body = bytearray()
    try:
        async for part in request.stream():
            body += part
            if len(body) > most:
                return _refused(f"a request may have at most {most:,} bytes", 413)
        content = json.loads(body, parse_constant=_no_constant, parse_int=_short_int)
        json.dumps(content, ensure_ascii=False).encode()  # refuses deep nesting and lone surrogates
    except ClientDisconnect:
        return Response(status_code=499)
    except (ValueError, RecursionError):
        return _refused("the request is not JSON", 400)
    return content if isinstance(content, dict) else _refused("the request is not an object", 400)


def _short_int(digits: str) -> int:
    if len(digits) > _LONGEST_INT:  # the time to read a number grows with the square of its length
        raise ValueError("a number is too long")
    return int(digits)


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _refused(message: str, status: int) -> Response:
    return JSONResponse({"error": {"kind": "request", "message": message}}, status)


async def _while_wanted(request: Request, pool: Pool, work: Any) -> dict[str, Any] | None:
    """The result of the work. If the client leaves or the server stops first, cancels the work and returns None."""
    task = asyncio.ensure_future(work)
    ends = [asyncio.ensure_future(request.receive()), asyncio.ensure_future(pool.stopping.wait())]
    try:
        await asyncio.wait({task, *ends}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            return None
        result: dict[str, Any] = await task
        return result
    finally:
        for future in (task, *ends):
            future.cancel()
        await asyncio.gather(task, *ends, return_exceptions=True)
