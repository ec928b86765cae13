"""Protects the application: only pages from this server get in, and every answer has strict headers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse

_POLICY = "; ".join(
    [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    ]
)
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cache-Control": "no-store",
}
_OWN = ("same-origin", "none")
"""Values of Sec-Fetch-Site for requests from the page itself, and for an address that the user typed."""


class Guard:
    """ASGI middleware that refuses foreign hosts and origins and sets strict headers.

    A foreign page can make a browser send requests to this machine, but it cannot forge their headers. Checking Host
    prevents DNS rebinding, and checking Origin prevents cross-site requests.
    """

    def __init__(self, app: Any, hosts: frozenset[str]) -> None:
        self._app, self._hosts = app, hosts
        self._origins = frozenset(f"http://{host}" for host in hosts)

    async def __call__(self, scope: Any, receive: Any, send: Callable[[Any], Awaitable[None]]) -> None:
        """Handle one request."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return

        async def send_locked_down(message: Any) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers[name] = value
            await send(message)

        problem = self._problem(Headers(scope=scope))
        app = self._app if problem is None else PlainTextResponse(f"{problem}\n", 403)
        await app(scope, receive, send_locked_down)

    def _problem(self, headers: Headers) -> str | None:
        hosts, origins = headers.getlist("host"), headers.getlist("origin")
        if len(hosts) != 1 or hosts[0].lower() not in self._hosts:
            return "this host is not served here"
        if origins and (len(origins) != 1 or origins[0].lower() not in self._origins):
            return "requests from other origins are refused"
        if headers.get("sec-fetch-site", "none") not in _OWN:
            return "requests from other sites are refused"
        return None
