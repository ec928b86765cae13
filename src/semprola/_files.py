"""Files that are whole or not there: the one helper that everything which writes a file uses."""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import IO


def write_atomically(path: str | os.PathLike[str], content: bytes | Callable[[IO[bytes]], object]) -> None:
    """Write a file so that others see the old contents or the new ones, never a part, and no scraps are left.

    Args:
        path: where; its folder must exist.
        content: the bytes, or a function that writes them to an open file.

    Raises:
        OSError: the folder is missing, the path is a folder, or the disk refuses.
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
