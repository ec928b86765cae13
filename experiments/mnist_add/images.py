"""Images of digits: MNIST from a folder, or scikit-learn's small digits for a quick look."""

from __future__ import annotations

import gzip
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from semprola.errors import FormatError, SemprolaError

_FILES = {
    "train": ("train-images-idx3-ubyte", "train-labels-idx1-ubyte", 60_000, [5, 0, 4, 1, 9]),
    "test": ("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte", 10_000, [7, 2, 1, 0, 4]),
}
_SMALL_TEST = 300


@dataclass(frozen=True)
class Images:
    """Images [n, 1, 28, 28] with numbers from 0 to 1, and the digits that they show [n]."""

    x: Tensor
    digits: Tensor

    def __len__(self) -> int:
        return len(self.digits)

    def take(self, rows: Tensor) -> Images:
        """Some of the images."""
        return Images(self.x[rows], self.digits[rows])


def load_mnist(folder: str | Path | None) -> tuple[Images, Images]:
    """The training and the test images of MNIST, in the published order.

    Args:
        folder: where the four published files are (packed or not), or ``train.npz`` and ``test.npz`` with arrays x, y.

    Raises:
        SemprolaError: a file is missing.
        FormatError: a file has another content.
    """
    if folder is None:
        raise SemprolaError("MNIST is not part of this package: pass --data FOLDER with its four published files")
    train, test = (_load_part(Path(folder), part) for part in _FILES)
    return train, test


def load_small() -> tuple[Images, Images]:
    """The digits of scikit-learn, enlarged to 28 × 28 pixels: 1,497 images to train on and 300 to test on."""
    from sklearn.datasets import load_digits

    found = load_digits()
    x = np.kron(found.images / 16.0, np.ones((3, 3)))
    x = np.pad(x, ((0, 0), (2, 2), (2, 2)))
    order = np.random.default_rng(0).permutation(len(x))
    images = Images(torch.from_numpy(x[order]).float()[:, None], torch.from_numpy(found.target[order]).long())
    cut = len(images) - _SMALL_TEST
    return images.take(torch.arange(cut)), images.take(torch.arange(cut, len(images)))


def _load_part(folder: Path, part: str) -> Images:
    x_name, y_name, count, first = _FILES[part]
    if (packed := folder / f"{part}.npz").is_file():
        with np.load(packed) as arrays:
            x, y = arrays["x"], arrays["y"]
    else:
        x, y = _idx(folder, x_name), _idx(folder, y_name)
    if x.shape != (count, 28, 28) or y[:5].tolist() != first:
        raise FormatError(f"{folder}: these are not the {count:,} images of MNIST's {part} part in their order")
    return Images(torch.from_numpy(x.astype(np.float32) / 255.0)[:, None], torch.from_numpy(y.astype(np.int64)))


def _idx(folder: Path, name: str) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
    """One of the published files, packed or not."""
    for path in (folder / name, folder / f"{name}.gz"):
        if path.is_file():
            data = path.read_bytes()
            data = gzip.decompress(data) if path.suffix == ".gz" else data
            sizes = np.frombuffer(data, ">i4", data[3], offset=4).tolist()
            return np.asarray(np.frombuffer(data, np.uint8, offset=4 + 4 * len(sizes)).reshape(sizes), np.uint8)
    raise SemprolaError(f"{folder} has neither {name} nor {name}.gz: put MNIST's published files there")
