"""Which trained models the page may open: those in the folder named on the command line."""

from __future__ import annotations

from pathlib import Path

from semprola.errors import FormatError

_INDEX = "model.json"
_MOST_MODELS = 100


def find_models(folder: Path | None) -> dict[str, Path]:
    """The models of a folder by name: the folder itself if it is a model, or the models directly inside it."""
    if folder is None:
        return {}
    if (folder / _INDEX).is_file():
        return {folder.resolve().name: folder}
    inside = sorted(folder.iterdir()) if folder.is_dir() else []
    found = {path.name: path for path in inside if (path / _INDEX).is_file()}
    if not found:
        raise FormatError(f"{folder}: no model here: choose a folder that `semprola train` or semprola.save wrote")
    return dict(list(found.items())[:_MOST_MODELS])
