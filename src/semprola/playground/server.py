"""`serve`: runs the playground on a local port until Ctrl-C."""

from __future__ import annotations

import contextlib
import socket
import threading
import webbrowser
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType

from semprola.errors import SemprolaError
from semprola.playground.folders import find_models
from semprola.playground.limits import Limits

HOST = "127.0.0.1"
"""The only address that the server ever listens on."""
PORT = 8700


def serve(
    port: int = PORT,
    *,
    folder: Path | None = None,
    data: Path | None = None,
    open_page: bool = True,
    limits: Limits | None = None,
    say: Callable[[str], None] = print,
) -> None:
    """Serve the playground on 127.0.0.1 until it is interrupted.

    Args:
        folder: a trained model, or a folder of models, that the page may open.
    """
    try:
        import uvicorn

        from semprola.playground.app import build_app
        from semprola.playground.pool import Pool
    except ImportError:
        raise SemprolaError("the playground needs starlette and uvicorn: pip install 'semprola[playground]'") from None
    find_models(folder)
    if data is not None and not data.is_file():
        raise SemprolaError(f"{data}: no such file")
    with _listening(port) as listener:
        number = listener.getsockname()[1]
        pool = Pool(limits or Limits(), folder, data)
        app = build_app(frozenset({f"{HOST}:{number}", f"localhost:{number}"}), pool, folder, data)
        address = f"http://{HOST}:{number}/"
        say(f"The playground is at {address} (Ctrl-C stops it)")
        if open_page:  # in a thread, since a browser that runs in this terminal would block
            threading.Thread(target=webbrowser.open, args=[address], daemon=True).start()
        config = uvicorn.Config(
            app,
            log_level="error",
            access_log=False,
            server_header=False,
            ws="none",
            http="h11",
            loop="asyncio",
            timeout_graceful_shutdown=1,
            limit_concurrency=64,
        )

        class Server(uvicorn.Server):
            def handle_exit(self, sig: int, frame: FrameType | None) -> None:
                pool.stop_soon()
                super().handle_exit(sig, frame)

        Server(config).run(sockets=[listener])


@contextlib.contextmanager
def _listening(port: int) -> Iterator[socket.socket]:
    # asyncio sends small answers at once only if the socket says that it is TCP; otherwise each waits for 40 ms
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    with contextlib.closing(listener):
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((HOST, port))
        except OSError as error:
            reason = error.strerror or str(error)
            raise SemprolaError(f"port {port} cannot be used ({reason}): try --port 0 for any free one") from None
        listener.listen(64)
        yield listener
