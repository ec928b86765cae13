"""Published data files: found in a folder or downloaded, and checked."""

from __future__ import annotations

import hashlib
import lzma
import os
import sys
import tempfile
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path

from semprola.errors import FormatError, SemprolaError

_TIMEOUT = 30.0
_BLOCK = 1 << 16


@dataclass(frozen=True)
class PublishedFile:
    """A file that its owners publish, and that this package therefore does not ship.

    Args:
        path: its path in a data folder.
        url: where it is published.
        sha256: the expected digest.
    """

    path: str
    url: str
    sha256: str


def find_file(file: PublishedFile, data: str | Path | None = None, *, download: bool = True) -> Path:
    """The file in the data folder, or downloaded into the user's cache; its content is checked either way.

    In the data folder, the file may be compressed, with `.xz` added to its name; then its decompressed content is
    checked.

    Args:
        file: the file to find.
        data: the data folder; by default the environment variable SEMPROLA_DATA, if set.
        download: whether it may be downloaded.

    Returns:
        A path whose content, unpacked if its name ends in `.xz`, has the expected sha256.

    Raises:
        FormatError: if the file exists but is not the published one.
        SemprolaError: if it is missing and cannot be fetched; the message says where to put it by hand.
    """
    folder = data if data is not None else os.environ.get("SEMPROLA_DATA") or None
    if folder is not None:
        for name in (file.path, Path(file.path).name):
            for candidate in (Path(folder) / name, Path(folder) / f"{name}.xz"):
                if candidate.is_file():
                    return _checked(candidate, file)
    cached = cache_folder() / file.path
    if cached.is_file():
        return _checked(cached, file)
    if not download:
        raise SemprolaError(f"{file.path} is not in the data folder: set SEMPROLA_DATA or --data to a folder with it")
    _download(file, cached)
    return cached


def _checked(path: Path, file: PublishedFile) -> Path:
    try:
        content = path.read_bytes()
        if path.suffix == ".xz" and Path(file.path).suffix != ".xz":
            content = lzma.decompress(content)
    except OSError as error:
        raise FormatError(f"{path}: cannot be read ({error.strerror})") from None
    except lzma.LZMAError as error:
        raise FormatError(f"{path}: not an xz file ({error})") from None
    digest = hashlib.sha256(content).hexdigest()
    if digest != file.sha256:
        raise FormatError(f"{path}: not the published file (sha256 {digest[:12]}…, expected {file.sha256[:12]}…)")
    return path


def cache_folder() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "semprola" / "data"


def _download(file: PublishedFile, target: Path) -> None:
    by_hand = f"fetch {file.url} by hand and put it at {file.path} in the folder that SEMPROLA_DATA names"
    digest = hashlib.sha256()
    partial = None
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with urllib.request.urlopen(file.url, timeout=_TIMEOUT) as answer:
            size = int(answer.headers.get("Content-Length") or 0)
            with tempfile.NamedTemporaryFile(dir=target.parent, prefix=".partial-", delete=False) as out:
                partial = Path(out.name)
                done = 0
                while block := answer.read(_BLOCK):
                    out.write(block)
                    digest.update(block)
                    done += len(block)
                    _show(file.path, done, size)
        if digest.hexdigest() != file.sha256:
            raise FormatError(f"{file.url} is not the file that was published (sha256 differs): {by_hand}")
        os.replace(partial, target)
        partial = None
    except (urllib.error.URLError, OSError, TimeoutError) as error:
        reason = getattr(error, "reason", None) or error
        raise SemprolaError(f"cannot download {file.path} ({reason}): {by_hand}") from None
    finally:
        if partial is not None:
            partial.unlink(missing_ok=True)


def _show(name: str, done: int, size: int) -> None:
    """Show progress on one line, if there is a terminal."""
    if not sys.stderr.isatty():
        return
    share = f"{100 * done / size:3.0f} %" if size else f"{done >> 10} kB"
    end = "\n" if size and done >= size else ""
    print(f"\rdownloading {name} {share}", end=end, file=sys.stderr, flush=True)
