"""The layers as modules: shapes, starting point, expressiveness, extreme parameters, bad arguments."""

import copy
import io
import math
import pickle

import networkx as nx
import pytest
import torch
from torch.distributions import kl_divergence

import semprola as sp

PETS = "(cat -> animal) & (dog -> animal)"


def layers(constraint=PETS, **options):
    yield sp.SPL(6, constraint, **options)
    yield sp.SPL(6, constraint, components=2, units=2, gate=(7,), **options)
    yield sp.ProductSPL(6, constraint, **options)
    yield sp.ProductSPL(6, constraint, components=3, gate=7, **options)
    yield sp.ProductSPL(6, constraint, q="hmm", units=2, **options)
    yield sp.ProductSPL(6, constraint, q="vtree", units=2, **options)


@pytest.fixture(params=range(6), ids=["spl", "spl-mk", "product", "mixture", "hmm", "vtree"])
def layer(request):
    return list(layers())[request.param]


@pytest.fixture(scope="module")
def hierarchy():
    tree = nx.random_labeled_rooted_tree(500, seed=1)
    parent = dict(nx.bfs_predecessors(tree, tree.graph["root"]))
    return sp.constraints.hierarchy([(f"n{c}", f"n{p}") for c, p in parent.items()])


@pytest.fixture(scope="module")
def circuit():
    """Inputs x and u; both at once leave no model."""
    return sp.compile("(x -> a) & (~x -> ~b) & (u -> ~(a & b)) & (u & x -> ~a)", labels=["a", "b"], given=["x", "u"])


class TestModule:
    @pytest.mark.parametrize("batch", [(), (1,), (7,), (2, 3), (0,)])
    def test_batch_shapes(self, layer, batch):
        p = layer(torch.randn(*batch, 6))
        assert p.batch_shape == batch
        assert p.event_shape == (3,)
        assert p.mode.shape == (*batch, 3)
        assert p.mean.shape == (*batch, 3)
        assert p.log_prob(p.mode).shape == batch
        assert p.sample((4,)).shape == (4, *batch, 3)
        assert p.entropy().shape == batch

    @pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
    def test_dtype_is_honoured(self, layer, dtype):
        p = layer.to(dtype)(torch.randn(2, 6, dtype=dtype))
        assert p.log_prob(p.mode).dtype == dtype
        assert p.mean.dtype == dtype

    def test_deepcopy_pickle_and_state_dict_give_the_same_distribution(self, layer):
        z = torch.randn(4, 6)
        y = layer(z).mode
        expected = layer(z).log_prob(y)
        file = io.BytesIO()
        torch.save(layer.state_dict(), file)
        file.seek(0)
        fresh = copy.deepcopy(layer)
        torch.nn.init.normal_(fresh.gate.output.weight)
        assert not torch.allclose(fresh(z).log_prob(y), expected)
        fresh.load_state_dict(torch.load(file, weights_only=True))
        for other in (fresh, copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
            torch.testing.assert_close(other(z).log_prob(y), expected)

    def test_parameters_of_another_circuit_are_refused(self):
        state = sp.SPL(6, "a | b").state_dict()
        with pytest.raises(sp.FormatError, match=r"^these parameters belong to another circuit"):
            sp.SPL(6, "a | ~b").load_state_dict(state)

    def test_training_step_reduces_the_loss(self, layer):
        torch.manual_seed(0)
        z = torch.randn(32, 6)
        y = torch.tensor([[1.0, 1, 0], [0, 1, 1]]).repeat(16, 1)
        optimizer = torch.optim.Adam(layer.parameters(), 0.05)
        first = -layer(z).log_prob(y).mean()
        for _ in range(30):
            loss = -layer(z).log_prob(y).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        assert loss < 0.8 * first

    def test_gradient_checkpointing(self, layer):
        from torch.utils.checkpoint import checkpoint

        z = torch.randn(4, 6, requires_grad=True)
        y = layer(z).mode
        (direct,) = torch.autograd.grad(layer(z).log_prob(y).sum(), z)
        (recomputed,) = torch.autograd.grad(checkpoint(lambda z: layer(z).log_prob(y).sum(), z, use_reentrant=False), z)
        torch.testing.assert_close(direct, recomputed)

    def test_autocast_to_bfloat16_computes_in_float32(self, layer):
        z = torch.randn(4, 6)
        exact = layer(z)
        y = exact.mode
        with torch.autocast("cpu", dtype=torch.bfloat16):
            p = layer(z)
            value = p.log_prob(y)
        assert value.dtype == torch.float32
        torch.testing.assert_close(value, exact.log_prob(y), atol=0.05, rtol=0.05)
        rows = torch.cartesian_prod(*[torch.tensor([0.0, 1.0])] * 3)
        total = p.log_prob(rows[:, None]).exp().sum(0)
        torch.testing.assert_close(total, torch.ones(4), atol=1e-4, rtol=0)
        value.sum().backward()
        assert all(torch.isfinite(w.grad).all() for w in layer.parameters())

    def test_repr_tells_circuit_and_options(self, layer):
        assert "Circuit(3 labels" in repr(layer)


class TestStart:
    def test_close_to_uniform_over_the_models(self, layer):
        # local coin flips would give half the mass to "no animal", one model of five
        p = layer(torch.zeros(6))
        away = p.log_prob(p.enumerate_support()) - math.log(1 / 5)
        # single components start at the uniform distribution itself, mixtures a little apart from it
        exact = layer.components == 1 and getattr(layer, "q", "factorized") == "factorized"
        assert away.abs().max() < (1e-6 if exact else 1.5)

    def test_uniform_start_of_a_large_constraint(self):
        layer = sp.SPL(4, sp.constraints.cardinality([f"y{i}" for i in range(200)], exactly=100))
        p = layer(torch.zeros(4))
        torch.testing.assert_close(p.entropy().item(), math.log(math.comb(200, 100)), rtol=1e-4, atol=0)


class TestMixing:
    def test_parameters_grow_with_the_square_and_not_the_cube(self):
        circuit = sp.compile(sp.constraints.hierarchy([(f"c{i}", f"c{(i - 1) // 2}") for i in range(1, 31)]))
        sizes = {
            mixing: [sp.SPL(1, circuit, units=k, mixing=mixing).plans.layer.num_weights for k in (2, 4, 8, 16)]
            for mixing in ("cross", "elementwise")
        }
        assert all(few < many for few, many in zip(sizes["elementwise"], sizes["cross"], strict=True))
        assert sizes["elementwise"][-1] < 4.1 * sizes["elementwise"][-2]
        assert sizes["cross"][-1] > 6 * sizes["cross"][-2]

    def test_is_kept_and_shown(self):
        layer = sp.SPL(2, PETS, units=2, mixing="elementwise")
        again = pickle.loads(pickle.dumps(layer))
        assert again.plans.mixing == "elementwise"
        assert "mixing='elementwise'" in repr(layer)
        z = torch.randn(3, 2)
        assert torch.equal(again(z).mean, layer(z).mean)
        p = sp.distributions.SPLDistribution(layer.circuit, layer.gate(z)[:, None], units=2, mixing="elementwise")
        assert torch.equal(p.mean, layer(z).mean)

    def test_other_names_are_refused(self):
        with pytest.raises(ValueError, match="'cross' or 'elementwise', not 'diagonal'"):
            sp.SPL(2, PETS, units=2, mixing="diagonal")


class TestExpressiveness:
    @pytest.mark.parametrize("mixing", ["cross", "elementwise"])
    @pytest.mark.parametrize("constraint", ["(a | ~a) & (b | ~b)", "(a | b) & (c | d)"])
    def test_units_add_modes_that_one_unit_cannot_fit(self, constraint, mixing):
        """Two independent parts of the constraint, perfectly correlated in the target."""
        circuit = sp.compile(constraint)
        states = torch.tensor(circuit.enumerate(), dtype=torch.float64)
        half = states.shape[1] // 2
        same = (states[:, :half] == states[:, half:]).all(1)
        states = states[same]
        target = torch.full((len(states),), 1 / len(states), dtype=torch.float64)

        def fit(units, seed):
            torch.manual_seed(seed)
            layer = sp.SPL(1, circuit, units=units, mixing=mixing).double()
            torch.nn.init.normal_(layer.gate.output.bias, std=2.0)
            z = torch.zeros(1, dtype=torch.float64)
            optimizer = torch.optim.LBFGS(layer.parameters(), max_iter=500, line_search_fn="strong_wolfe")

            def loss():
                optimizer.zero_grad()
                value = (target * (target.log() - layer(z).log_prob(states))).sum()
                value.backward()
                return value

            optimizer.step(loss)
            return loss().item()

        assert min(fit(len(states), seed) for seed in range(5)) < 1e-3
        # one unit makes the two parts independent: at best it loses their mutual information
        assert fit(1, 0) > math.log(len(states)) - 1e-6


class TestExtremes:
    @pytest.mark.parametrize("size", [1e4, 1e2])
    @pytest.mark.parametrize("make", [sp.SPL, sp.ProductSPL])
    def test_gates_of_ten_thousand_on_500_labels(self, hierarchy, make, size):
        torch.manual_seed(0)
        layer = make(3, hierarchy)
        with torch.no_grad():
            layer.gate.output.weight.zero_()
            layer.gate.output.bias.copy_(size * torch.sign(torch.randn_like(layer.gate.output.bias)))
        z = torch.randn(2, 3, requires_grad=True)
        p = layer(z)
        y = torch.stack([torch.ones(500), torch.zeros(500)])
        loss = -p.log_prob(y).mean()
        loss.backward()
        assert torch.isfinite(loss)
        assert torch.isfinite(z.grad).all()
        assert all(torch.isfinite(w.grad).all() for w in layer.parameters())
        assert torch.isfinite(p.mean).all()
        assert torch.isfinite(p.log_prob(p.mode)).all()

    @pytest.mark.parametrize("make", [sp.SPL, sp.ProductSPL])
    def test_a_violating_vector_has_exactly_no_probability_and_no_gradient(self, hierarchy, make):
        layer = make(3, hierarchy)
        z = torch.randn(2, 3, requires_grad=True)
        y = torch.ones(2, 500)
        formula = hierarchy
        child = layer.labels.index(formula.labels[0])
        parent = layer.labels.index(formula.labels[1])
        y[1] = 0
        y[1, child], y[1, parent] = 1, 0
        value = layer(z).log_prob(y)
        assert torch.isfinite(value[0])
        assert value[1] == -math.inf
        value.sum().backward()
        assert torch.isfinite(z.grad).all()
        assert (z.grad[1] == 0).all()

    def test_more_than_10_to_the_100_models(self):
        labels = [f"y{i}" for i in range(400)]
        for layer in (sp.SPL(2, sp.at_least(1, labels)), sp.ProductSPL(2, sp.at_least(1, labels))):
            assert layer.circuit.model_count() == 2**400 - 1
            z = torch.randn(3, 2, requires_grad=True)
            loss = -layer(z).log_prob(torch.ones(3, 400)).mean()
            loss.backward()
            assert torch.isfinite(loss)
            assert torch.isfinite(z.grad).all()


class TestGiven:
    @pytest.mark.parametrize("make", [sp.SPL, sp.ProductSPL])
    def test_a_row_that_leaves_no_model_is_named(self, circuit, make):
        layer = make(4, circuit)
        with pytest.raises(sp.UnsatisfiableError, match=r"^the given inputs leave no model in row 1$"):
            layer(torch.randn(3, 4), given=torch.tensor([[0, 0], [1, 1], [1, 0]]))
        with pytest.raises(sp.UnsatisfiableError, match=r" in rows \(0, 1\), \(1, 0\)$"):
            layer(torch.randn(2, 2, 4), given=torch.tensor([[[0, 0], [1, 1]], [[1, 1], [0, 1]]]))
        with pytest.raises(sp.UnsatisfiableError, match=r"^the given inputs leave no model$"):
            layer(torch.randn(4), given=torch.tensor([1, 1]))

    @pytest.mark.parametrize(
        ("given", "message"),
        [
            (None, r"the constraint has inputs \(x, u\): pass given="),
            (torch.zeros(3, 1), r"given has shape \(3, 1\), expected \(3, 2\): one column for each given variable"),
            (torch.zeros(2, 2), r"given has shape \(2, 2\), expected \(3, 2\)"),
            ("1", r"given must be numbers of shape \(3, 2\), or values by name, not str"),
            (sp.parse("x"), r"given must be numbers of shape \(3, 2\), or values by name, not \w+"),
            ([["1", "0"]] * 3, r"given must be numbers of shape \(3, 2\), or values by name, not list"),
            ([[1, 0], [1]], r"given must be numbers of shape \(3, 2\), or values by name, not list"),
        ],
    )
    def test_bad_given(self, circuit, given, message):
        with pytest.raises(sp.LabelError, match=f"^{message}$"):
            sp.SPL(4, circuit)(torch.randn(3, 4), given=given)

    def test_given_where_none_is_wanted(self):
        with pytest.raises(sp.LabelError, match=r"^the constraint has no inputs"):
            sp.SPL(4, PETS)(torch.randn(3, 4), given=torch.zeros(3, 1))

    def test_given_must_be_binary(self, circuit):
        with pytest.raises(ValueError, match=r"^given must contain only 0 and 1$"):
            sp.SPL(4, circuit)(torch.randn(1, 4), given=torch.tensor([[0.5, 0]]))


class TestBadArguments:
    @pytest.mark.parametrize(
        ("make", "message"),
        [
            (lambda: sp.SPL(0, PETS), "in_features must be a positive whole number, not 0"),
            (lambda: sp.SPL(4, PETS, replicas=0), "replicas must be a positive whole number, not 0"),
            (lambda: sp.SPL(4, PETS, units=1.5), "units must be a positive whole number, not 1.5"),
            (
                lambda: sp.SPL(4, PETS, gate=(8, -1)),
                "a hidden size of the gate must be a positive whole number, not -1",
            ),
            (lambda: sp.ProductSPL(4, PETS, mixtures=True), "mixtures must be a positive whole number, not True"),
            (
                lambda: sp.SPL(4, PETS, units=10**6),
                "units=1000000 would make 2e+12 weights: use fewer units, or components= instead",
            ),
            (
                lambda: sp.ProductSPL(4, PETS, q="x"),
                "q must be 'factorized', 'hmm', 'vtree' or a subclass of Q, not 'x'",
            ),
            (lambda: sp.SPL(4, PETS)(torch.zeros(2, 3)), r"expected features of shape [*batch, 4], got (2, 3)"),
            (lambda: sp.losses.SemanticLoss(PETS, "max"), "reduction must be 'mean', 'sum' or 'none', not 'max'"),
            (lambda: sp.baselines.FIL(4, 0), "labels must be a positive whole number, not 0"),
        ],
    )
    def test_one_line_each(self, make, message):
        with pytest.raises(ValueError) as error:  # noqa: PT011
            make()
        assert str(error.value) == message

    def test_features_that_are_whole_numbers(self):
        with pytest.raises(TypeError, match=r"^features must be floating point, not torch.int64: use z.float\(\)$"):
            sp.SPL(4, PETS)(torch.ones(2, 4).long())

    def test_no_labels(self):
        with pytest.raises(sp.LabelError, match=r"^the constraint has no labels: there is nothing to predict$"):
            sp.SPL(4, sp.logic.TRUE)

    def test_a_circuit_that_is_not_deterministic(self):
        from semprola.circuit import CircuitBuilder

        b = CircuitBuilder(["a", "b"])
        circuit = b.build(b.sum([b.literal(0, True), b.literal(1, True)]))
        with pytest.raises(sp.errors.PropertyError, match=r"^the circuit is not provably deterministic"):
            sp.SPL(4, circuit)


class TestLosses:
    def test_semantic_loss_is_minus_log_of_the_probability_of_the_constraint(self):
        logits = torch.randn(5, 3, dtype=torch.float64, requires_grad=True)
        formula = sp.parse(PETS)
        rows = torch.cartesian_prod(*[torch.tensor([0.0, 1.0], dtype=torch.float64)] * 3)
        allowed = formula.evaluate(rows, labels=formula.labels)
        log_q = torch.distributions.Bernoulli(logits=logits).log_prob(rows[:, None]).sum(-1)
        probability = (log_q.exp() * allowed[:, None]).sum(0)
        loss = sp.losses.SemanticLoss(formula, reduction="none")(logits)
        torch.testing.assert_close(loss, -probability.log())
        conditional = log_q.exp() * allowed[:, None] / probability
        entropy = torch.special.entr(conditional).sum(0)
        torch.testing.assert_close(sp.losses.NeSyEntropy(formula, reduction="none")(logits), entropy)
        assert torch.autograd.gradcheck(sp.losses.NeSyEntropy(formula), (logits,))
        assert torch.autograd.gradcheck(sp.losses.SemanticLoss(formula, "sum"), (logits,))

    def test_losses_with_inputs(self):
        circuit = sp.compile("x -> a", labels=["a"], given=["x"])
        loss = sp.losses.SemanticLoss(circuit, reduction="none")(torch.zeros(2, 1), given=torch.tensor([[0], [1]]))
        torch.testing.assert_close(loss, torch.tensor([0.0, math.log(2)]))


class TestFIL:
    def test_is_a_product_of_sigmoids(self):
        layer = sp.baselines.FIL(4, ["a", "b"], gate=(5,))
        p = layer(torch.randn(3, 4))
        assert layer.labels == ("a", "b")
        torch.testing.assert_close(p.mean, torch.sigmoid(p.logits[:, 0]))
        torch.testing.assert_close(p.log_partition, torch.zeros(3), atol=1e-6, rtol=0)
        y = torch.tensor([[1.0, 0.0]])
        expected = torch.distributions.Bernoulli(logits=p.logits[:, 0]).log_prob(y).sum(-1)
        torch.testing.assert_close(p.log_prob(y), expected)

    def test_divergence_to_a_constrained_layer_of_the_same_circuit_only(self):
        p, q = sp.baselines.FIL(4, 2)(torch.randn(4)), sp.SPL(4, "a | b")(torch.randn(4))
        with pytest.raises(ValueError, match=r"^kl_divergence needs two distributions over the same circuit$"):
            kl_divergence(p, q)
