"""From the attributes of a file to the inputs of a network: missing values, categories, scale."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from semprola.errors import SemprolaError

Categories = tuple[tuple[str, ...] | None, ...]


def feature_pipeline(categories: Categories) -> Any:
    """A scikit-learn pipeline: fit it on training rows, and only on those.

    A missing number becomes the column's mean; a category becomes one column per value, all zero if it is missing.
    Then every column is standardised.

    Args:
        categories: for every attribute its values, or None if it is numeric.

    Raises:
        SemprolaError: scikit-learn is not installed.

    Example:
        >>> rows = np.array([[1.0, 0], [3.0, 1], [np.nan, np.nan]])
        >>> feature_pipeline((None, ("no", "yes"))).fit(rows).transform(rows).shape
        (3, 3)
    """
    try:
        from sklearn.compose import ColumnTransformer
        from sklearn.impute import SimpleImputer
        from sklearn.pipeline import Pipeline
        from sklearn.preprocessing import OneHotEncoder, StandardScaler
    except ImportError:
        raise SemprolaError("features are prepared by scikit-learn: install semprola[experiments]") from None
    numeric = [i for i, names in enumerate(categories) if names is None]
    nominal = [i for i, names in enumerate(categories) if names is not None]
    values = [np.arange(len(names), dtype=np.float64) for names in categories if names is not None]
    encode = OneHotEncoder(categories=values, handle_unknown="ignore", sparse_output=False)
    columns = [
        ("numbers", SimpleImputer(strategy="mean", keep_empty_features=True), numeric),
        ("categories", encode, nominal),
    ]
    return Pipeline([("columns", ColumnTransformer(columns)), ("scale", StandardScaler())])


def impute_by_file(values: NDArray[np.float64], categories: Categories) -> NDArray[np.float64]:
    """Fill missing numbers with the means of these very rows, as the released code does with every file.

    The means of a test file are taken from test rows, so this is only here to repeat what was published.

    Example:
        >>> impute_by_file(np.array([[1.0], [np.nan]]), (None,)).tolist()
        [[1.0], [1.0]]
    """
    filled: NDArray[np.float64] = np.array(values)
    for j, names in enumerate(categories):
        column = filled[:, j]
        missing = np.isnan(column)
        if names is None and missing.any() and not missing.all():
            column[missing] = column[~missing].mean()
    return filled
