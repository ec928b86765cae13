"""The playground: a local page to try rules, beliefs and evidence. Needs starlette and uvicorn (extra `playground`).

The server (`app`, `server`) does no work itself. Every request goes to a child process (`worker`) that `pool` can kill
at any time, so no input from the page can freeze the server.
"""
