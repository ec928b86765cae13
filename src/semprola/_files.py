"""Atomic file writes: a file is complete or absent. Everything that writes files goes through this helper."""

from __future__ import annotations

import errno
import glob
import os
import re
import secrets
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO

_OLD_SECONDS = 3600
"""No writer takes this long after its last byte."""


def write_atomically(path: str | os.PathLike[str], content: bytes | Callable[[IO[bytes]], object]) -> None:
    """Write a file atomically: readers see the old contents or the new, never a mix, and no temporary file remains."""
    target = Path(path)
    if not target.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "No such folder", str(target.parent))
    if target.is_dir():
        raise IsADirectoryError(errno.EISDIR, "Is a folder, not a file", str(target))
    _remove_old_scraps(target)
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


def _remove_old_scraps(target: Path) -> None:
    """Remove what writers of this file left behind when they were killed; those at work are younger."""
    for found in target.parent.glob(f".{glob.escape(target.name[:100])}.*"):
        try:
            is_scrap = re.fullmatch("[0-9a-f]{16}", found.name.rpartition(".")[2])
            if is_scrap and found.is_file() and time.time() - found.stat().st_mtime > _OLD_SECONDS:
                found.unlink()
        except OSError:
            continue  # someone else removed it, or may: it is only scrap
