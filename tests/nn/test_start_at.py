"""`start_at`: a layer begins at the frequencies of the training labels."""

import math

import networkx as nx
import numpy as np
import pytest
import torch

import semprola as sp

KINDS = {
    "spl": lambda circuit, **options: sp.SPL(4, circuit, **options),
    "spl-mk": lambda circuit, **options: sp.SPL(4, circuit, components=3, units=2, **options),
    "product": lambda circuit, **options: sp.ProductSPL(4, circuit, **options),
    "mixture": lambda circuit, **options: sp.ProductSPL(4, circuit, components=2, **options),
    "hmm": lambda circuit, **options: sp.ProductSPL(4, circuit, q="hmm", **options),
    "vtree": lambda circuit, **options: sp.ProductSPL(4, circuit, q="vtree", units=3, **options),
}


def tree():
    return sp.constraints.hierarchy([(f"c{i}", f"c{(i - 1) // 2}") for i in range(1, 9)])


def paths():
    return sp.constraints.simple_paths(nx.grid_2d_graph(3, 3), source=(0, 0), target=(2, 2))


CONSTRAINTS = {"tree": tree, "paths": paths, "permutation": lambda: sp.constraints.permutation(3)}


def labels_of(circuit, rows=200, seed=0):
    """Label vectors with frequencies far from uniform."""
    generator = torch.Generator().manual_seed(seed)
    models = torch.from_numpy(circuit.enumerate()[:, : circuit.num_labels].copy()).double()
    weights = torch.rand(len(models), generator=generator) ** 4
    return models[torch.multinomial(weights, rows, replacement=True, generator=generator)]


def loss_of(layer, y, given=None):
    z = torch.randn(len(y), 4, dtype=torch.float64)
    p = layer(z) if given is None else layer(z, given=given)
    return -p.log_prob(y.to(torch.float64)).mean().item()


def best_loss(layer, y, given=None, steps=200):
    """The loss of the best parameters that do not depend on features, found by a general method."""
    z = torch.zeros(len(y), 4, dtype=torch.float64)
    bias = layer.gate.output.bias
    search = torch.optim.LBFGS([bias], max_iter=steps, tolerance_grad=1e-9, line_search_fn="strong_wolfe")

    def loss():
        search.zero_grad()
        value = -(layer(z) if given is None else layer(z, given=given)).log_prob(y.to(torch.float64)).mean()
        value.backward()
        return value

    search.step(loss)
    return loss().item()


@pytest.fixture(params=CONSTRAINTS.values(), ids=CONSTRAINTS)
def circuit(request):
    return sp.compile(request.param())


@pytest.mark.parametrize("kind", ["spl", "product"])
def test_one_component_begins_at_the_best_loss_there_is(circuit, kind):
    y = labels_of(circuit)
    layer = KINDS[kind](circuit, dtype=torch.float64)
    uniform = loss_of(layer, y)
    layer.start_at(y, smoothing=1e-6)
    begun = loss_of(layer, y)
    assert begun < uniform - 0.1
    assert begun == pytest.approx(best_loss(layer, y), abs=1e-4)


@pytest.mark.parametrize("kind", ["spl-mk", "mixture", "hmm", "vtree"])
def test_mixtures_begin_close_to_one_component(circuit, kind):
    torch.manual_seed(1)
    y = labels_of(circuit)
    single = "spl" if kind == "spl-mk" else "product"
    expected = loss_of(KINDS[single](circuit, dtype=torch.float64).start_at(y, smoothing=1e-3), y)
    layer = KINDS[kind](circuit, dtype=torch.float64)
    assert loss_of(layer.start_at(y, smoothing=1e-3, noise=1e-9), y) == pytest.approx(expected, abs=1e-4)
    begun = loss_of(layer.start_at(y, smoothing=1e-3), y)
    assert begun == pytest.approx(expected, abs=0.15)
    assert len(set(layer.gate.output.bias.tolist())) > 1


def test_a_single_circuit_counts_branches():
    # ten of sixteen rows have an animal; of these, four a cat and one a dog
    rows = [[0, 0, 0]] * 6 + [[1, 1, 0]] * 3 + [[1, 1, 1]] + [[0, 1, 0]] * 6
    pets = sp.constraints.hierarchy([("cat", "animal"), ("dog", "animal")])
    layer = sp.SPL(4, pets, labels=["cat", "animal", "dog"], dtype=torch.float64)
    p = layer.start_at(torch.tensor(rows), smoothing=1e-9)(torch.zeros(4, dtype=torch.float64))
    expected = torch.tensor([4 / 16, 10 / 16, 1 / 16], dtype=torch.float64)
    torch.testing.assert_close(p.mean, expected, atol=1e-6, rtol=0)
    together = p.log_prob(torch.ones(3)).exp().item()
    assert together == pytest.approx(10 / 16 * 4 / 10 * 1 / 10, abs=1e-6)


def test_smoothing_is_a_number_of_uniform_observations():
    y = torch.tensor([[1.0, 0, 0, 0]] * 6)
    constraint = sp.one_hot(list("abcd"))
    for smoothing in (0.5, 2.0):
        expected = torch.tensor([6 + smoothing / 4] + [smoothing / 4] * 3) / (6 + smoothing)
        for layer in (sp.SPL(3, constraint), sp.ProductSPL(3, constraint)):
            mean = layer.start_at(y, smoothing=smoothing)(torch.randn(3)).mean
            if isinstance(layer, sp.ProductSPL):
                torch.testing.assert_close(mean, expected, atol=1e-4, rtol=0)
            else:
                assert mean[0] > 0.7
                assert (mean > 0).all()


def test_inputs_leave_only_some_branches():
    circuit = sp.compile("(x -> ~a) & exactly(1, a, b, c, d)", labels=list("abcd"), given=["x"])
    generator = torch.Generator().manual_seed(0)
    given = (torch.rand(400, 1, generator=generator) < 0.5).double()
    weights = torch.tensor([0.4, 0.3, 0.2, 0.1], dtype=torch.float64).repeat(400, 1)
    weights[:, 0] *= 1 - given[:, 0]
    y = torch.nn.functional.one_hot(torch.multinomial(weights, 1, generator=generator)[:, 0], 4).double()
    for kind in ("spl", "product"):
        layer = KINDS[kind](circuit, dtype=torch.float64).start_at(y, given, smoothing=1e-6)
        begun = loss_of(layer, y, given)
        assert begun == pytest.approx(best_loss(layer, y, given), abs=2e-3)


def test_independent_labels_have_their_frequencies():
    y = (torch.rand(50, 3) < torch.tensor([0.1, 0.5, 0.9])).float()
    layer = sp.baselines.FIL(4, 3).start_at(y, smoothing=1e-9)
    torch.testing.assert_close(layer(torch.randn(4)).mean, y.mean(0), atol=1e-4, rtol=0)


def test_rare_labels_of_a_deep_hierarchy_have_their_frequencies_too():
    """Labels that a thousandth of the rows have, six levels down: the search has to be as exact for them."""
    parents = {i: (i - 1) // 3 for i in range(1, 364)}
    circuit = sp.compile(sp.constraints.hierarchy([(f"c{child}", f"c{parent}") for child, parent in parents.items()]))
    y = torch.zeros(3000, circuit.num_labels)
    leaves = 121 + torch.multinomial(torch.arange(1, 244) ** 3.0, len(y), replacement=True)
    for row, label in enumerate(leaves.tolist()):
        while label:
            y[row, circuit.labels.index(f"c{label}")] = 1
            label = parents[label]
        y[row, circuit.labels.index("c0")] = 1
    z = torch.zeros(1, 2, dtype=torch.float64)
    uniform = sp.ProductSPL(2, circuit).double()(z).mean[0]
    wanted = (y.double().sum(0) + uniform) / (len(y) + 1)
    mean = sp.ProductSPL(2, circuit).double().start_at(y)(z).mean[0]
    assert wanted.min() < 1e-3
    torch.testing.assert_close(mean, wanted, rtol=0.03, atol=0)


def test_features_are_learned_from_there():
    torch.manual_seed(0)
    y = labels_of(sp.compile(tree()))
    layer = sp.SPL(4, tree(), gate=(8,)).start_at(y)
    z = torch.randn(len(y), 4)
    layer(z).log_prob(y.float()).mean().backward()
    assert layer.gate.output.weight.grad.abs().max() > 0
    kept = sp.SPL(4, tree()).start_at(y, scale=1.0)
    assert kept.gate.output.weight.abs().max() > 0


@pytest.mark.parametrize(
    ("y", "options", "message"),
    [
        (torch.tensor([[1.0, 0, 0], [1, 1, 0]]), {}, r"y violates the constraint in row 1: leave these rows out"),
        (torch.zeros(0, 3), {}, r"y: expected rows of 3 labels, got shape \(0, 3\)"),
        (torch.zeros(2, 4), {}, r"y: expected rows of 3 labels, got shape \(2, 4\)"),
        (torch.full((1, 3), 0.5), {}, "y must contain only 0 and 1"),
        (torch.eye(3), {"smoothing": 0}, "smoothing must be a finite number above 0, not 0"),
        (torch.eye(3), {"smoothing": math.nan}, "smoothing must be a finite number above 0, not nan"),
        (torch.eye(3), {"smoothing": math.inf}, "smoothing must be a finite number above 0, not inf"),
        (torch.eye(3), {"smoothing": "1"}, "smoothing must be a finite number above 0, not '1'"),
        (torch.eye(3), {"smoothing": None}, "smoothing must be a finite number above 0, not None"),
        (torch.eye(3), {"scale": math.nan}, "scale must be a finite number from 0, not nan"),
        (torch.eye(3), {"scale": math.inf}, "scale must be a finite number from 0, not inf"),
        (torch.eye(3), {"scale": -1}, "scale must be a finite number from 0, not -1"),
        (torch.eye(3), {"noise": math.nan}, "noise must be a finite number from 0, not nan"),
        (torch.eye(3), {"noise": math.inf}, "noise must be a finite number from 0, not inf"),
        (torch.eye(3), {"noise": -0.1}, "noise must be a finite number from 0, not -0.1"),
        (torch.eye(3), {"noise": [1.0, 2.0]}, r"noise must be a finite number from 0, not \[1.0, 2.0\]"),
    ],
)
def test_refusals(y, options, message):
    for kind in (sp.SPL, sp.ProductSPL):
        layer = kind(4, sp.one_hot(["a", "b", "c"]))
        with pytest.raises(ValueError, match=f"^{message}$"):
            layer.start_at(y, **options)
        assert layer.is_new


def test_numbers_of_numpy_and_torch():
    y = torch.eye(3)
    for number in (np.float32(0.5), np.int64(1), torch.tensor(0.5), 1):
        sp.SPL(4, sp.one_hot(["a", "b", "c"])).start_at(y, smoothing=number, noise=number, scale=number)


@pytest.mark.parametrize("kind", KINDS)
def test_one_row_of_inputs_is_for_all_rows(kind):
    circuit = sp.compile("(x -> ~a) & exactly(1, a, b, c)", labels=list("abc"), given=["x"])
    y = torch.tensor([[0, 1, 0], [0, 0, 1], [0, 0, 1]])
    started = []
    for given in (torch.ones(3, 1), torch.ones(1, 1), torch.ones(1), {"x": 1}, {"x": [1]}, [[1]]):
        torch.manual_seed(0)
        started.append(KINDS[kind](circuit).start_at(y, given).gate.output.bias.detach())
    for bias in started[1:]:
        torch.testing.assert_close(bias, started[0])
    with pytest.raises(ValueError, match=r"given has rows of shape \(2,\), y of shape \(3,\)"):
        KINDS[kind](circuit).start_at(y, torch.ones(2, 1))
    with pytest.raises(ValueError, match="y violates the constraint in row 0"):
        KINDS[kind](circuit).start_at(torch.eye(3), torch.ones(1))


def test_a_gate_without_a_bias_to_set():
    layer = sp.SPL(4, "a | b", gate=torch.nn.Identity())
    with pytest.raises(
        sp.errors.PropertyError, match=r"^the gate does not end in an nn.Linear with a bias and \d+ outputs"
    ):
        layer.start_at(torch.ones(1, 2))


@pytest.mark.parametrize("make", CONSTRAINTS.values(), ids=CONSTRAINTS)
def test_exactly_the_rows_that_violate_the_constraint_are_named(make) -> None:
    circuit = sp.compile(make())
    models = torch.from_numpy(circuit.enumerate()).float()
    torch.manual_seed(0)
    y = torch.cat([models[:40], (torch.rand(60, circuit.num_labels) < 0.4).float()])
    y = y[torch.randperm(len(y))]
    fits = torch.as_tensor(circuit.satisfied(y))
    assert 0 < int(fits.sum()) < len(y)
    layer = sp.SPL(4, circuit)
    layer.start_at(y[fits])
    for row in torch.nonzero(~fits)[:5, 0].tolist():
        some = torch.cat([y[fits][:3], y[row : row + 1]])
        for refused in (
            lambda rows=some: layer.start_at(rows),
            lambda rows=some: sp.SPL(4, circuit, known_states=rows),
        ):
            with pytest.raises(ValueError, match="violates the constraint in row 3"):
                refused()


@pytest.mark.parametrize("constraint", CONSTRAINTS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_row_of_weight_n_is_like_n_rows(kind, constraint):
    circuit = sp.compile(CONSTRAINTS[constraint]())
    y = labels_of(circuit, 40)
    weight = torch.arange(40) % 3
    started = []
    for rows, options in ((y, {"weight": weight}), (y.repeat_interleave(weight, 0), {})):
        torch.manual_seed(0)
        started.append(KINDS[kind](circuit, dtype=torch.float64).start_at(rows, **options).gate.output.bias)
    torch.testing.assert_close(*started, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("kind", ["spl", "product"])
def test_weights_count_with_given_inputs_too(kind):
    circuit = sp.compile("(x -> a) & (a -> b)", given=["x"])
    y = torch.tensor([[1.0, 1.0], [0.0, 0.0], [0.0, 1.0]])
    given = torch.tensor([[1.0], [0.0], [0.0]])
    weight = [2, 1, 3]
    started = []
    for index, options in (([0, 1, 2], {"weight": weight}), ([0, 0, 1, 2, 2, 2], {})):
        torch.manual_seed(0)
        started.append(KINDS[kind](circuit).start_at(y[index], given[index], **options).gate.output.bias)
    torch.testing.assert_close(*started, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        ([1.0, 2.0], "weight must have one number for each of 3 rows"),
        ([1.0, -1.0, 1.0], "weights must be finite"),
        ([0.0, 0.0, 0.0], "and not all zero"),
        ([1.0, float("nan"), 1.0], "must be finite"),
    ],
)
def test_weights_are_checked(weight, message):
    layer = sp.SPL(4, "a -> b")
    with pytest.raises(ValueError, match=message):
        layer.start_at(torch.ones(3, 2), weight=weight)
