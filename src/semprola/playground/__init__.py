"""The playground: a local page to try rules, beliefs and evidence. Needs starlette and uvicorn (extra `playground`).

The server (`app`, `server`) does no work of its own. Every request goes to a child process (`worker`) that `pool` can
end at any time, so no input from the page can freeze it.
"""
