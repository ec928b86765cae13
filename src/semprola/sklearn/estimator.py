"""A scikit-learn estimator: a network whose predictions obey a constraint. Needs the extra `sklearn`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from semprola.circuit import Circuit
from semprola.compiler.splitting import Split
from semprola.errors import IntractableError, LabelError
from semprola.sklearn.output import as_output, check_kind
from semprola.sklearn.parameters import check_device, check_parameters, layer_name
from semprola.sklearn.state import restored, state_of
from semprola.training import FitSettings
from semprola.training import fit as fit_network
from semprola.training.networks import tabular_network
from semprola.training.sets import PredictionSet, conformal_threshold, grow_sets

try:
    from sklearn.base import BaseEstimator, ClassifierMixin
    from sklearn.utils import check_random_state
    from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data
except ImportError:
    raise ImportError("semprola.sklearn needs scikit-learn 1.6 or later: pip install 'semprola[sklearn]'") from None
from semprola.sklearn.targets import Targets, new_targets

_CHUNK = 2048
"""Number of rows that are predicted at once."""
_FEWEST = 20
"""Smallest number of rows of which some are held out for early stopping."""


class SPLClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Multi-label classifier whose predictions obey a constraint.

    A multi-layer perceptron that ends in a semantic probabilistic layer, trained by maximum likelihood. Inputs are
    standardised. Labels that are NaN are unobserved; rows that have some are trained by the marginal likelihood. If y
    is a single column of classes, the labels are the classes, and exactly one of them holds.

    Args:
        constraint: a formula, its text (one rule per line), a family such as ``sp.constraints.hierarchy``,
            (child, parent) pairs, a compiled circuit, or a file with one of these; None for no rules. Or a split, for
            rules that do not compile; see :func:`semprola.split`.
        labels: names of the columns of y. By default those of y, if it is a data frame, else those of the constraint.
        hidden: widths of the network's hidden layers.
        layer: "product-spl" (`sp.ProductSPL`) or "spl" (`sp.SPL`).
        components: number of mixture components (m of the paper).
        units: number of units per sum, for layer "spl" (k of the paper).
        dropout: probability of dropout after each hidden layer.
        epochs: largest number of passes over the training rows.
        batch_size: rows per gradient step.
        lr: learning rate of AdamW.
        weight_decay: decoupled weight decay.
        validation_fraction: fraction of rows held out for early stopping; 0 to train on all rows for all epochs.
        patience: epochs without a better likelihood on held-out rows before training stops.
        decode: what `predict` returns: "mode" (the most probable y), or "hamming", "f1" or "jaccard" (the y that
            maximises that score in expectation).
        label_weight: weight of the individual labels' log losses, added to the joint one: one number, or one per label.
        device: where to train and predict, such as "cuda".
        timeout, max_nodes, memory: the budget of the compilation, see :func:`semprola.compile`.
        random_state: seed of the initial parameters, the order of rows and the choice of held-out rows.
        verbose: show progress.

    Attributes:
        labels_: names of the columns of y.
        classes_: the classes, or one array [0, 1] per label.
        circuit_: the compiled constraint; of a split, its first circuit.
        split_: the split; None if one circuit states the constraint.
        network_: the trained network, which returns distributions. It is trained in float32 and then converted to
            float64, so that a prediction does not depend on the other rows of its batch.
        history_: losses and scores during training.
        n_features_in_, feature_names_in_: as in every estimator.

    Example:
        >>> import numpy as np
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(200, 3))
        >>> y = np.stack([X[:, 0] > 1, X[:, 0] > 0], axis=1).astype(int)  # very warm, warm
        >>> model = SPLClassifier("very_warm -> warm", random_state=0).fit(X, y)
        >>> model.predict([[2.0, 0.0, 0.0], [-2.0, 0.0, 0.0]])
        array([[1, 1],
               [0, 0]])
    """

    labels_: tuple[str, ...]
    classes_: Any
    circuit_: Circuit
    split_: Split | None = None
    network_: nn.Module
    n_iter_: int
    set_scores_: NDArray[np.float64]

    def __init__(
        self,
        constraint: Any = None,
        labels: Sequence[str] | None = None,
        *,
        hidden: Sequence[int] = (64,),
        layer: str = "product-spl",
        components: int = 1,
        units: int = 1,
        dropout: float = 0.0,
        epochs: int = 100,
        batch_size: int = 64,
        lr: float = 1e-2,
        weight_decay: float = 1e-4,
        validation_fraction: float = 0.1,
        patience: int = 10,
        decode: str = "mode",
        label_weight: float | Sequence[float] | None = None,
        device: str | None = None,
        timeout: float | None = None,
        max_nodes: int | None = None,
        memory: int | str | None = None,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.constraint = constraint
        self.labels = labels
        self.hidden = hidden
        self.layer = layer
        self.components = components
        self.units = units
        self.dropout = dropout
        self.epochs = epochs
        self.batch_size = batch_size
        self.lr = lr
        self.weight_decay = weight_decay
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.decode = decode
        self.label_weight = label_weight
        self.device = device
        self.timeout = timeout
        self.max_nodes = max_nodes
        self.memory = memory
        self.random_state = random_state
        self.verbose = verbose

    # training -------------------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, checkpoint: str | Path | None = None) -> SPLClassifier:
        """Train from scratch.

        Args:
            X: inputs [rows, features].
            y: 0, 1, and NaN where not observed [rows, labels]; a data frame is matched by column names. Or one class
                per row [rows].
            sample_weight: one weight per row [rows].
            checkpoint: a file to resume from if it exists, and to write after every epoch.

        Returns:
            The estimator.

        Raises:
            LabelError: if the columns of y do not match the labels.
            ValueError: if a parameter is wrong, such as a device that this machine does not have.
            SemprolaError: if rows of y violate the constraint, however their NaN are filled in; the message names the
                first few, counted from 0 or by the index of a pandas data frame, and the rules that they break.
        """
        check_parameters(self)
        x, table, weight = self._rows(X, y, sample_weight, reset=True)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.network_ = self._new_network(x, table, weight)
            held_out = self._held_out(len(x))
        rows = _take((x, table, None, weight), ~held_out)
        valid = _take((x, table), held_out) if bool(held_out.any()) else None
        self.history_ = fit_network(
            self.network_,
            rows,
            valid,
            self._settings(),
            seed=seed,
            start_at_labels=False,  # the network is made with its start
            progress=bool(self.verbose),
            checkpoint=checkpoint,
        )
        self.network_.double()
        self.n_iter_ = -(-self.history_.step[-1] // -(-len(rows[0]) // self.batch_size))
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> SPLClassifier:
        """Train for one more epoch on these rows; the first call starts from scratch.

        Args:
            X: inputs [rows, features].
            y: as for `fit`.
            classes: all classes, on the first call, if y has one class per row.
            sample_weight: one weight per row [rows].
        """
        first = not hasattr(self, "network_")
        check_parameters(self)
        x, table, weight = self._rows(X, y, sample_weight, reset=first, classes=classes)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        if first:
            self.n_iter_ = 0
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(seed)
                self.network_ = self._new_network(x, table, weight)
        rows = (x, table, None, weight)
        settings = self._settings(epochs=1)
        self.network_.float()
        seed = (seed + self.n_iter_) % 2**31
        self.history_ = fit_network(self.network_, rows, None, settings, seed=seed, start_at_labels=False)
        self.network_.double()
        self.n_iter_ += 1
        return self

    # prediction -----------------------------------------------------------------------------------------------------

    def set_output(self, *, transform: str | None = None) -> SPLClassifier:
        """Choose what `predict`, `predict_proba` and `predict_log_proba` return, as scikit-learn's transformers do.

        By default they return arrays, regardless of what X is, as all of scikit-learn's classifiers do.

        Args:
            transform: "pandas" or "polars" for data frames with one column per label (a series, if y has one class per
                row), which have the index of X if both are from pandas; "default" for arrays; None to change nothing.

        Example:
            >>> model = SPLClassifier("a | b", epochs=1).fit([[0.0], [1.0]], [[0, 1], [1, 1]])
            >>> list(model.set_output(transform="pandas").predict_proba([[0.5]]).columns)
            ['a', 'b']
        """
        if transform is not None:
            check_kind(transform)
            self._sklearn_output_config = {"transform": transform}  # scikit-learn's clone keeps it
        return self

    def predict(self, X: Any) -> Any:
        """The most probable y, or the one that `decode` asks for: 0/1 [rows, labels], or classes [rows].

        An array, or a data frame if `set_output` asks for it; so are all predictions.

        Raises:
            IntractableError: for rows for which no state of a split was found; names them.
        """
        states = self._states(X)
        if self.is_multilabel_:
            return self._output(states, self.labels_, X)
        return self._output(self.classes_[states.argmax(1)], None, X)

    def predict_proba(self, X: Any) -> Any:
        """Exact marginal probabilities of the labels [rows, labels].

        Raises:
            IntractableError: the constraint is a split; see ``model.distribution(X).mean_estimate(n)``.
        """
        return self._output(self._marginals(X), self.labels_, X)

    def predict_log_proba(self, X: Any) -> Any:
        """Logarithms of `predict_proba`."""
        with np.errstate(divide="ignore"):
            return self._output(np.log(self._marginals(X)), self.labels_, X)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The fraction of rows whose observed labels are all predicted right.

        For y without NaN this is scikit-learn's accuracy. Rows without any observed label are left out. In
        scikit-learn's `cross_val_score`, pass ``cv=KFold(5)`` instead of ``cv=5`` if y has NaN: for a number, it looks
        at y itself and refuses NaN.

        Args:
            X: inputs [rows, features].
            y: as for `fit`.
            sample_weight: one weight per row [rows].

        Raises:
            LabelError: if the columns of y do not match the labels, or no label is observed.
        """
        check_is_fitted(self, "network_")
        if not self.is_multilabel_:
            return float(super().score(X, y, sample_weight))
        truth = self._targets.table(y)
        seen = ~np.isnan(truth)
        told = seen.any(1)
        if not told.any():
            raise LabelError("y has no observed label to score")
        states = self._states(X)
        if len(states) != len(truth):
            raise ValueError(f"X has {len(states)} rows, but y has {len(truth)}")
        right = ((states == truth) | ~seen).all(1)
        weight = _check_sample_weight(sample_weight, states)
        return float(np.average(right[told], weights=weight[told]))

    def top_k(self, X: Any, k: int = 5) -> tuple[NDArray[Any], NDArray[np.float64]]:
        """The k most probable y of each row, best first: states [rows, k, labels] and probabilities [rows, k].

        Of a split, these are certified lower bounds of the probabilities.
        """
        found = [p.top_k(k) for p in self._distributions(X)]
        states = _joined(states for states, _ in found).astype(np.int64)
        return states, _joined(values.exp() for _, values in found).astype(np.float64)

    def sample(self, X: Any, n_samples: int = 1, random_state: Any = None) -> NDArray[Any]:
        """Samples of y, all within the constraint [samples, rows, labels]."""
        seed = int(check_random_state(random_state).randint(2**31 - 1))
        generator = torch.Generator().manual_seed(seed)
        drawn = [p.sample((n_samples,), generator=generator).cpu() for p in self._distributions(X)]
        return torch.cat(drawn, 1).numpy().astype(np.int64)

    def calibrate_sets(self, X: Any, y: Any) -> SPLClassifier:
        """Prepare `predict_sets` with rows that the model was not trained on.

        Args:
            X: inputs [rows, features].
            y: labels without NaN [rows, labels], or one class per row.
        """
        x = self._inputs(X)
        truth = torch.from_numpy(self._targets.table(y)).to(x)
        if bool(truth.isnan().any()):
            raise LabelError("calibrate_sets needs rows whose labels are all observed, but y has NaN")
        parts = [p.log_prob(truth[i * _CHUNK : (i + 1) * _CHUNK]) for i, p in enumerate(self._distributions(X))]
        self.set_scores_ = np.sort(_joined(parts).astype(np.float64))
        return self

    def predict_sets(self, X: Any, coverage: float = 0.9) -> list[PredictionSet]:
        """Sets of consistent label vectors that contain the truth with at least the stated probability.

        Each set has all states whose probability reaches the threshold found by `calibrate_sets` (split-conformal
        prediction). The guarantee holds on average over rows from the same source as the calibration rows.

        Args:
            X: inputs [rows, features].
            coverage: the probability with which a set should contain the truth.

        Raises:
            ValueError: if `calibrate_sets` was not called, or was called with too few rows for this coverage.
            IntractableError: if a set is too large to list.

        Example:
            >>> rng = np.random.default_rng(0)
            >>> X = rng.normal(size=(300, 2))
            >>> y = np.stack([X[:, 0] > 1, X[:, 0] > 0], axis=1).astype(int)
            >>> model = SPLClassifier("a -> b", random_state=0, epochs=20).fit(X[:150], y[:150])
            >>> sets = model.calibrate_sets(X[150:200], y[150:200]).predict_sets(X[200:], coverage=0.9)
            >>> sum(truth in found for truth, found in zip(y[200:], sets)) >= 80
            True
        """
        if not hasattr(self, "set_scores_"):
            raise ValueError("call calibrate_sets first, with rows that the model was not trained on")
        threshold = conformal_threshold(self.set_scores_, coverage)
        if threshold == float("-inf"):
            raise ValueError(f"{len(self.set_scores_)} calibration rows are too few for a coverage of {coverage}")
        x = self._inputs(X)
        with torch.no_grad():
            return grow_sets(lambda rows: self.network_(x if rows is None else x[rows]), len(x), threshold)

    def distribution(self, X: Any) -> Any:
        """The distribution over y for all rows, for any query.

        Example:
            >>> model = SPLClassifier("a | b", epochs=1).fit([[0.0], [1.0]], [[0, 1], [1, 1]])
            >>> model.distribution([[0.5]]).condition({"b": 0}).mode.int().tolist()
            [[1, 0]]
        """
        x = self._inputs(X)
        with torch.no_grad():
            return self.network_(x)

    # files ----------------------------------------------------------------------------------------------------------

    def saved_state(self) -> dict[str, Any]:
        """Everything except the network, as plain data; for :func:`semprola.save`."""
        check_is_fitted(self, "network_")
        return state_of(self)

    @classmethod
    def from_saved(cls, state: Mapping[str, Any], network: nn.Module, circuit: Circuit) -> SPLClassifier:
        """The estimator with this saved state; for :func:`semprola.load`."""
        estimator: SPLClassifier = restored(cls, state, network, circuit)
        return estimator

    def __sklearn_tags__(self) -> Any:
        """What the estimator can do."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags

    # inside ---------------------------------------------------------------------------------------------------------

    @property
    def _constraint(self) -> Circuit | Split:
        return self.split_ or self.circuit_

    def _rows(
        self, X: Any, y: Any, sample_weight: Any, *, reset: bool, classes: Any = None
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        """Inputs, labels and weights as tensors; on a reset, also sets the labels and the circuit."""
        if y is None:
            raise ValueError("this SPLClassifier requires y to be passed, but the target y is None")
        X = validate_data(self, X, dtype=np.float64, reset=reset)
        if reset:
            budget = {"timeout": self.timeout, "max_nodes": self.max_nodes, "memory": self.memory}
            new = new_targets(y, self.constraint, self.labels, classes, budget)
            self.labels_, self.classes_, self.is_multilabel_ = new.labels, new.classes, new.is_multilabel
            self.split_ = None if isinstance(new.circuit, Circuit) else new.circuit
            self.circuit_ = new.circuit if isinstance(new.circuit, Circuit) else new.circuit.circuits[0]
        weight = None if sample_weight is None else _check_sample_weight(sample_weight, X, dtype=np.float32)
        return self._targets.rows(X, y, weight, are_named=self.labels is not None or hasattr(y, "columns"))

    @property
    def _targets(self) -> Targets:
        return Targets(self.labels_, self.classes_, self._constraint, self.is_multilabel_)

    def _new_network(self, x: Tensor, y: Tensor, weight: Tensor | None) -> nn.Sequential:
        return tabular_network(
            x, y, weight, self._constraint, hidden=self.hidden, dropout=self.dropout, layer=layer_name(self.layer),
            components=self.components, units=self.units,
        ).to(self.device)  # fmt: skip

    def _held_out(self, count: int) -> Tensor:
        """Which rows are held out for early stopping [rows]; none if there are few rows."""
        chosen = torch.zeros(count, dtype=torch.bool)
        size = int(self.validation_fraction * count)
        if count >= _FEWEST and size:
            chosen[torch.randperm(count)[:size]] = True
        return chosen

    def _settings(self, **changes: Any) -> FitSettings:
        weight = self.label_weight
        options: dict[str, Any] = {
            "epochs": self.epochs,
            "batch_size": self.batch_size,
            "lr": self.lr,
            "weight_decay": self.weight_decay,
            "patience": self.patience,
            "label_weight": tuple(weight) if isinstance(weight, Sequence | np.ndarray) else weight,
        }
        return FitSettings(**{**options, **changes})

    def _inputs(self, X: Any) -> Tensor:
        check_is_fitted(self, "network_")
        X = validate_data(self, X, dtype=np.float64, reset=False)
        check_device(self.device)
        return torch.tensor(X, device=self.device)

    def _distributions(self, X: Any) -> Iterator[Any]:
        """Distributions of consecutive parts of the rows."""
        x = self._inputs(X)
        with torch.no_grad():
            for first in range(0, len(x), _CHUNK):
                yield self.network_(x[first : first + _CHUNK])

    def _output(self, values: NDArray[Any], columns: Sequence[str] | None, X: Any) -> Any:
        return as_output(values, columns, X, getattr(self, "_sklearn_output_config", {}).get("transform", "default"))

    def _marginals(self, X: Any) -> NDArray[np.float64]:
        return _joined(p.mean for p in self._distributions(X)).astype(np.float64)

    def _states(self, X: Any) -> NDArray[np.int64]:
        """The predicted 0/1 [rows, labels]."""
        if self.split_ is not None:
            return self._found_states(X)
        return _joined(p.decode(self.decode) for p in self._distributions(X)).astype(np.int64)

    def _found_states(self, X: Any) -> NDArray[np.int64]:
        """The modes over a split [rows, labels]; rows for which the search finds none are an error."""
        states = _joined(p.try_mode() for p in self._distributions(X))
        missing = np.flatnonzero(np.isnan(states).any(1))
        if len(missing):
            shown = ", ".join(map(str, missing[:5])) + (", …" if len(missing) > 5 else "")
            raise IntractableError(
                f"no state that satisfies all rules was found for {len(missing)} of {len(states)} rows: {shown}: try "
                "model.distribution(X).within(seconds=, nodes=).mode, or split with larger circuits"
            )
        return states.astype(np.int64)


def _take(rows: tuple[Tensor | None, ...], which: Tensor) -> Any:
    return tuple(None if part is None else part[which] for part in rows)


def _joined(parts: Any) -> NDArray[Any]:
    return torch.cat([part.cpu() for part in parts]).numpy()
