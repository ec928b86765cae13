"""Atomic file writes: a file is complete or absent. Everything that writes files goes through this helper."""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import IO


def write_atomically(path: str | os.PathLike[str], content: bytes | Callable[[IO[bytes]], object]) -> None:
    """Write a file atomically: readers see the old contents or the new, never a mix, and no temporary file remains.

    Args:
        path: the file to write; its folder must exist.
        content: the bytes, or a function that writes them to an open file.

    Raises:
        OSError: if the folder is missing, the path is a folder, or writing fails.
    """
    target = Path(path)
    if not target.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "No such folder", str(target.parent))
    if target.is_dir():
        raise IsADirectoryError(errno.EISDIR, "Is a folder, not a file", str(target))
    scrap = target.with_name(f".{target.name[:100]}.{secrets.token_hex(8)}")
    try:
        with open(scrap, "xb") as file:
            if callable(content):
                content(file)
            else:
                file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(scrap, target)
    except BaseException:
        scrap.unlink(missing_ok=True)
        raise
