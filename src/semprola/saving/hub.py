"""Saved models on Hugging Face's hub: `push_to_hub` and `from_pretrained`. Needs the extra `hub`."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from torch import nn

from semprola._files import write_atomically
from semprola._version import __version__
from semprola.errors import SemprolaError
from semprola.saving.cards import model_card
from semprola.saving.folders import load, read_metadata, save

_FILES = ["model.json", "weights.safetensors", "circuit-*.sp"]
_CARD = "README.md"
HUB_OPTIONS = ("revision", "token", "cache_dir", "force_download", "local_files_only")
"""What :func:`from_pretrained` passes on to huggingface_hub."""


def push_to_hub(
    model: Any,
    repo_id: str,
    *,
    commit_message: str = "Upload a semprola model",
    private: bool | None = None,
    token: str | bool | None = None,
    branch: str | None = None,
    create_pr: bool = False,
    card: str | None = None,
    license: str | None = None,
) -> str:
    """Upload a model to Hugging Face's hub, with a model card; the repository is made if it does not exist.

    Args:
        model: whatever :func:`semprola.save` takes, or a folder that it or `semprola train` has written.
        repo_id: "owner/name".
        commit_message: the message of the commit.
        private: make a new repository private; None for your account's default.
        token: of the hub; None for the one that `hf auth login` has stored.
        branch: the branch to upload to; by default "main".
        create_pr: open a pull request instead of a commit to the branch.
        card: your own model card; by default one is written, see :func:`semprola.saving.model_card`.
        license: the model's licence for that card, such as "apache-2.0".

    Returns:
        The address of the commit, or of the pull request.

    Raises:
        SemprolaError: huggingface_hub is not installed, or the hub refuses.
        FormatError: the folder holds no model, or the model cannot be saved.
    """
    with _asking(repo_id) as hub, tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "model"
        model = _saved(model, folder)
        text = card
        if text is None:
            text = model_card(model, repo_id, metadata=read_metadata(folder)[0], license=license)
        write_atomically(folder / _CARD, text.encode())
        api = hub.HfApi(token=token, library_name="semprola", library_version=__version__)
        made = api.create_repo(repo_id, private=private, exist_ok=True)
        if branch is not None and not create_pr:
            api.create_branch(made.repo_id, branch=branch, exist_ok=True)
        done = api.upload_folder(
            repo_id=made.repo_id,
            folder_path=folder,
            commit_message=commit_message,
            revision=branch,
            create_pr=create_pr,
            delete_patterns=_FILES,  # circuits of an earlier model must not stay
        )
        return str(done.pr_url or done.commit_url)


def from_pretrained(name: str | os.PathLike[str], *, model: nn.Module | None = None, **options: Any) -> Any:
    """Load a model from a folder or from Hugging Face's hub. Only weights, JSON and circuits are fetched, never code.

    Args:
        name: a folder that :func:`semprola.save` has written, or "owner/name" on the hub.
        model: for networks that `save` cannot describe, a module to load the weights into.
        **options: of the hub, all optional: `revision` (a branch, a tag or a commit), `token` (None for the one that
            `hf auth login` has stored), `cache_dir`, `force_download`, `local_files_only`.

    Returns:
        The network (or the estimator), ready to predict.

    Raises:
        FormatError: there is no model, or its files are damaged.
        SemprolaError: huggingface_hub is not installed, or the hub refuses.
        TypeError: an option is unknown.

    Example:
        >>> import tempfile, semprola as sp
        >>> folder = sp.save(sp.SPL(4, "cat -> animal"), tempfile.mkdtemp())
        >>> from_pretrained(folder).circuit.labels
        ('cat', 'animal')
    """
    return load(fetched(name, **options), model)


def fetched(name: str | os.PathLike[str], **options: Any) -> Path:
    """The folder of that name, or the copy of a repository on the hub."""
    unknown = [option for option in options if option not in HUB_OPTIONS]
    if unknown:
        raise TypeError(f"from_pretrained has no option {unknown[0]!r}; its options are {', '.join(HUB_OPTIONS)}")
    folder = Path(name)
    if folder.is_dir() or not isinstance(name, str) or not _is_repository(name):
        return folder
    with _asking(name) as hub:
        return Path(
            hub.snapshot_download(
                name, allow_patterns=_FILES, library_name="semprola", library_version=__version__, **options
            )
        )


def _saved(model: Any, folder: Path) -> Any:
    """Save a model, or copy one that is in a folder already; return it."""
    if hasattr(model, "save_pretrained"):  # a network of one's own, see Pretrained
        model.save_pretrained(folder)
        return model
    if not isinstance(model, str | os.PathLike):
        save(model, folder)
        return model
    loaded = load(model)
    save(loaded, folder, metadata=read_metadata(model)[0])
    return loaded


def _is_repository(name: str) -> bool:
    """Whether a text can be "owner/name" on the hub, not a path."""
    return name.count("/") == 1 and not name.startswith((".", "/", "~")) and "\\" not in name


@contextmanager
def _asking(repo_id: str) -> Iterator[Any]:
    """The library of the hub; whatever it raises is told in one line."""
    try:
        import huggingface_hub as hub
    except ImportError:
        raise SemprolaError(f"{repo_id}: models on the hub need huggingface_hub: pip install 'semprola[hub]'") from None
    try:
        yield hub
    except (SemprolaError, KeyboardInterrupt, TypeError):
        raise
    except Exception as error:  # of the network, of the hub, of its validation
        reason = (str(error).splitlines() or [type(error).__name__])[0][:200]
        raise SemprolaError(f"{repo_id}: {reason}") from error
