"""Mixtures of distributions, known label sets and candidate lists, against tables of all states."""

import copy
import io

import oracle
import pytest
import torch
import zoo
from oracle import Table
from selection import spread
from torch.distributions import kl_divergence

import semprola as sp
from semprola.distributions.domain import Domain
from semprola.distributions.tables import StateTable

CASES = [case for case in zoo.CASES if not case.large]
NAN = float("nan")


def layer_of(kind, circuit, seed, **options):
    torch.manual_seed(seed)
    made = {
        "spl": lambda: sp.SPL(3, circuit, **options),
        "spl-m2": lambda: sp.SPL(3, circuit, components=2, **options),
        "spl-k2": lambda: sp.SPL(3, circuit, units=2, **options),
        "product": lambda: sp.ProductSPL(3, circuit, components=2, **options),
    }[kind]()
    for weight in made.parameters():
        torch.nn.init.normal_(weight, std=1.5)
    return made.double()


def inputs_of(case, rows, seed=0):
    if not case.given:
        return None
    live = oracle.inputs(case)
    return live[torch.randint(len(live), (rows,), generator=torch.Generator().manual_seed(seed))]


def known_of(case, seed=0):
    """Some models of the case, with repetitions."""
    models = torch.from_numpy(case.circuit.enumerate()[:, : len(case.columns)].copy())
    return models[torch.randint(len(models), (5,), generator=torch.Generator().manual_seed(seed))]


def check_all_queries(p, table, case):
    """Every query of p agrees with the table of its probabilities."""
    close = {"atol": 1e-8, "rtol": 1e-8}
    torch.testing.assert_close(table.log_partition, torch.zeros_like(table.log_partition), **close)
    torch.testing.assert_close(p.mean.double(), table.mean, **close)
    assert (table.is_mode(p.mode, 1e-8) | ~p.mode_is_exact).all()
    torch.testing.assert_close(p.entropy(), table.entropy, **close)
    torch.testing.assert_close(p.top_k(4)[1], table.top_k(4), **close)
    torch.testing.assert_close(table.hamming_loss(p.decode("hamming")), table.least_hamming_loss, **close)
    evidence = torch.full((len(case.columns),), NAN, dtype=torch.float64)
    evidence[0] = 1.0
    torch.testing.assert_close(
        p.log_marginal(evidence), table.log_marginal(evidence.expand(*p.batch_shape, -1)), **close
    )
    sampled = p.sample((50,))
    assert (table.log_prob(sampled) > -torch.inf).all()


@pytest.mark.parametrize("case", spread(CASES, 14), ids=lambda case: case.name)
@pytest.mark.parametrize("kinds", [("spl", "spl-m2"), ("product", "spl"), ("spl-k2", "product")], ids="+".join)
def test_mixture_against_tables(case, kinds):
    x = inputs_of(case, 4)
    z = torch.randn(4, 3, dtype=torch.float64)
    options = {} if x is None else {"given": x}
    parts = [layer_of(kind, case.circuit, seed)(z, **options) for seed, kind in enumerate(kinds)]
    weights = torch.tensor([0.3, 0.7], dtype=torch.float64)
    p = sp.distributions.mixture(parts, weights)
    expected = torch.logsumexp(
        torch.stack([w.log() + Table.of(part).log_probs for w, part in zip(weights, parts, strict=True)]), 0
    )
    torch.testing.assert_close(oracle.log_probs_of_all(p).double(), expected, atol=1e-9, rtol=1e-9)
    check_all_queries(p, Table(expected), case)


@pytest.mark.parametrize("case", spread(CASES, 18, 1), ids=lambda case: case.name)
@pytest.mark.parametrize("components", [1, 2])
def test_known_states_against_tables(case, components):
    layer = layer_of("spl", case.circuit, 1, components=components, known_states=known_of(case))
    x = inputs_of(case, 4)
    z = torch.randn(4, 3, dtype=torch.float64)
    p = layer(z) if x is None else layer(z, given=x)
    raw = oracle.log_probs_of_all(p)
    allowed = oracle.allowed(case, x).expand(4, -1)
    assert torch.equal(raw > -torch.inf, allowed)
    # the table by its definition: a softmax of θ·y + log count over the known states that obey
    own, odds, mixing = layer.gate(z).split(layer._widths, -1)
    states = oracle.all_states(len(case.columns))
    rows, counts = torch.unique(known_of(case), dim=0, return_counts=True)
    scores = torch.full((len(states),), -torch.inf, dtype=torch.float64)
    scores[oracle.state_index(rows)] = counts.double().log()
    scores = (odds @ states.T + scores).masked_fill(~allowed, -torch.inf)
    some = (scores > -torch.inf).any(-1, keepdim=True)
    table = torch.where(some, torch.log_softmax(scores, -1), -torch.inf)
    parameters = own.unflatten(-1, (layer.num_parameters, components)).transpose(-1, -2)
    share = torch.log_softmax(mixing, -1)
    parts = [sp.distributions.SPLDistribution(layer.plans, parameters[:, [c]], given=x) for c in range(components)]
    logs = torch.stack(
        [*(Table.of(part).log_probs + share[:, [c]] for c, part in enumerate(parts)), table + share[:, -1:]]
    )
    expected = Table(torch.logsumexp(logs, 0))
    torch.testing.assert_close(raw, expected.log_probs, atol=1e-9, rtol=1e-9)
    check_all_queries(p, Table(expected.log_probs), case)
    p.log_prob(p.mode).sum().backward()
    assert all(torch.isfinite(weight.grad).all() for weight in layer.parameters())


def wide(count=14):
    return sp.compile(sp.at_least(1, [f"y{i}" for i in range(count)]))


class TestMode:
    def test_lists_of_the_components_prove_what_bounds_cannot(self):
        circuit = wide()
        states = oracle.all_states(14)[1:]
        z = torch.randn(40, 3, dtype=torch.float64)
        p = sp.distributions.mixture([layer_of("spl", circuit, seed)(z) for seed in range(3)])
        log_probs = p.log_prob(states[:, None])
        best = log_probs.max(0).values
        found = p.log_prob(p.mode)
        assert (found[p.mode_is_exact] >= best[p.mode_is_exact] - 1e-9).all()
        assert p.mode_is_exact.float().mean() > 0.8

    def test_known_states_mode(self):
        circuit = wide()
        y = (torch.rand(30, 14) < 0.3).double()
        y[:, 0] = 1
        layer = layer_of("spl", circuit, 0, known_states=y)
        p = layer(torch.randn(20, 3, dtype=torch.float64))
        best = p.log_prob(oracle.all_states(14)[1:, None]).max(0).values
        exact = p.mode_is_exact
        assert exact.any()
        torch.testing.assert_close(p.log_prob(p.mode)[exact], best[exact])


class TestKnownStates:
    def layer(self, **options):
        y = torch.tensor([[1.0, 0, 0], [1, 0, 0], [0, 1, 0]])
        return sp.SPL(4, sp.one_hot(["a", "b", "c"]), known_states=y, **options)

    def test_start_and_start_at(self):
        layer = self.layer()
        assert layer.num_gate_outputs == layer.num_parameters + 3 + 2
        mean = layer(torch.zeros(4)).mean
        torch.testing.assert_close(mean, torch.tensor([1 / 3 + 2 / 3, 1 / 3 + 1 / 3, 1 / 3]) / 2)
        y = torch.tensor([[1.0, 0, 0]] * 9 + [[0, 0, 1.0]])
        layer.start_at(y, smoothing=1e-6)
        mean = layer(torch.randn(4)).mean
        torch.testing.assert_close(mean, torch.tensor([0.9 + 2 / 3, 1 / 3, 0.1]) / 2, atol=1e-4, rtol=0)

    def test_state_dict_carries_the_table(self):
        layer = self.layer()
        other = sp.SPL(4, layer.circuit, known_states=torch.tensor([[0.0, 0, 1]]))
        z = torch.randn(5, 4)
        y = torch.eye(3)[[0] * 5]
        other(z).log_prob(y)
        file = io.BytesIO()
        torch.save(layer.state_dict(), file)
        file.seek(0)
        other.load_state_dict(torch.load(file, weights_only=True))
        for again in (other, copy.deepcopy(layer), layer.to("cpu")):
            assert torch.equal(again(z).mean, layer(z).mean)
            assert torch.equal(
                again(z).log_prob(torch.eye(3)[0].expand(5, 3)), layer(z).log_prob(torch.eye(3)[0].expand(5, 3))
            )

    def test_saved_and_loaded(self, tmp_path):
        net = torch.nn.Sequential(torch.nn.Linear(6, 4), self.layer())
        sp.save(net, tmp_path / "net")
        again, x = sp.load(tmp_path / "net"), torch.randn(5, 6)
        assert torch.equal(again(x).mean, net(x).mean)

    def test_training(self):
        torch.manual_seed(0)
        layer = self.layer(components=2)
        y = torch.eye(3)[[0, 1, 2, 0, 1]]
        z = torch.randn(5, 4)
        optimizer = torch.optim.Adam(layer.parameters(), 0.1)
        first = -layer(z).log_prob(y).mean()
        for _ in range(30):
            optimizer.zero_grad()
            loss = -layer(z).log_prob(y).mean()
            loss.backward()
            optimizer.step()
        assert loss < 0.5 * first

    @pytest.mark.extensive
    def test_in_one_graph(self):
        layer = self.layer(components=2)
        z, y = torch.randn(3, 4), torch.eye(3)
        for query in (lambda z: layer(z).log_prob(y), lambda z: layer(z).mode):
            # compiled code may round otherwise
            torch.testing.assert_close(torch.compile(query, fullgraph=True)(z), query(z), rtol=1e-6, atol=1e-6)

    def test_under_transforms(self):
        layer = self.layer(components=2)
        z, y = torch.randn(3, 4), torch.eye(3)
        slopes = torch.func.vmap(torch.func.grad(lambda z, y: layer(z).log_prob(y)))(z, y)
        z.requires_grad_()
        layer(z).log_prob(y).sum().backward()
        torch.testing.assert_close(slopes, z.grad)

    def test_rows_that_break_the_rules_are_named(self):
        with pytest.raises(ValueError, match=r"^known_states violates the constraint in row 1: leave these rows out$"):
            sp.SPL(4, sp.one_hot(["a", "b"]), known_states=torch.tensor([[1.0, 0], [1, 1]]))
        with pytest.raises(ValueError, match=r"^known_states: expected rows of 2 labels, got shape \(0, 2\)$"):
            sp.SPL(4, sp.one_hot(["a", "b"]), known_states=torch.zeros(0, 2))

    def test_table_finds_rows_and_nothing_else(self):
        rows = oracle.all_states(9)[torch.randperm(512)[:200]]
        table = StateTable(rows)
        found = table.find(oracle.all_states(9).T)
        inside = found >= 0
        assert int(inside.sum()) == 200
        assert torch.equal(rows[found[inside]], oracle.all_states(9)[inside])


class TestRescore:
    def test_order_and_scores(self):
        p = layer_of("spl-m2", sp.compile("a | b"), 0)(torch.randn(6, 3, dtype=torch.float64))
        states = oracle.all_states(2)
        prior = torch.tensor([0.0, -1.0, -0.5, -torch.inf], dtype=torch.float64)
        for weight in (0.0, 0.7):
            ordered, scores = p.rescore(states, prior, weight)
            own = p.log_prob(states[:, None].expand(-1, 6, -1))
            expected = own + weight * prior.masked_fill(prior == -torch.inf, 0.0)[:, None]
            expected[3] = -torch.inf
            torch.testing.assert_close(scores, expected.sort(0, descending=True).values.T)
            assert (scores[:, 2:] == -torch.inf).all()
            torch.testing.assert_close(p.log_prob(ordered[:, 0]).gt(-torch.inf), torch.ones(6, dtype=torch.bool))

    def test_candidates_that_violate_the_constraint_stay_last(self):
        p = sp.constrain(torch.zeros(2, 3), "(cat -> animal) & (dog -> animal)")
        states = torch.tensor([[1, 0, 0], [0, 0, 0]])
        for prior, weight in ((3e38, 1.0), (3e38, 10.0), (-3e38, -10.0)):
            ordered, scores = p.rescore(states, torch.tensor([prior, 0.0]), weight)
            assert torch.equal(ordered[:, 0], torch.zeros(2, 3))
            assert (scores[:, 1] == -torch.inf).all()

    def test_refusals(self):
        p = sp.SPL(3, "a | b")(torch.zeros(2, 3))
        with pytest.raises(ValueError, match=r"^expected candidates \[\*batch, n, 2\], got shape \(3, 3\)$"):
            p.rescore(torch.zeros(3, 3), torch.zeros(3))
        with pytest.raises(ValueError, match="do not fit batch"):
            p.rescore(torch.zeros(3, 2), torch.zeros(4))


class TestMixtureOf:
    def test_batches_are_broadcast_and_weights_may_differ_by_row(self):
        circuit = sp.compile("a | b")
        first, second = layer_of("spl", circuit, 0), layer_of("product", circuit, 1)
        z = torch.randn(5, 3, dtype=torch.float64)
        weights = torch.rand(5, 2, dtype=torch.float64)
        p = sp.distributions.mixture([first(z), second(z[0])], weights)
        share = weights / weights.sum(-1, keepdim=True)
        expected = share[:, :1] * first(z).mean + share[:, 1:] * second(z[0]).mean
        torch.testing.assert_close(p.mean, expected)
        assert p.batch_shape == (5,)

    def test_a_weight_of_zero_leaves_one_out(self):
        circuit = sp.compile("a | b")
        parts = [layer_of("spl", circuit, seed)(torch.zeros(3, dtype=torch.float64)) for seed in (0, 1)]
        p = sp.distributions.mixture(parts, [1.0, 0.0])
        torch.testing.assert_close(p.mean, parts[0].mean)
        torch.testing.assert_close(
            kl_divergence(p, parts[0]), torch.tensor(0.0, dtype=torch.float64), atol=1e-9, rtol=0
        )

    @pytest.mark.parametrize("kinds", [("spl", "spl"), ("spl-m2", "product"), ("spl-k2", "spl")], ids="+".join)
    @pytest.mark.parametrize("query", ["log_prob", "mean", "entropy"])
    @pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
    def test_gradient_by_a_weight_of_zero(self, kinds, query, dtype):
        circuit, step = sp.compile("a | b"), 1e-6
        layers = {
            each: [layer_of(kind, circuit, i).to(each) for i, kind in enumerate(kinds)]
            for each in (torch.float64, dtype)
        }

        def answer(weights):
            z = torch.ones(2, 3, dtype=weights.dtype)
            p = sp.distributions.mixture([layer(z) for layer in layers[weights.dtype]], weights)
            asked = {"log_prob": lambda: p.log_prob(torch.ones(2)), "mean": lambda: p.mean, "entropy": p.entropy}
            return asked[query]().sum()

        near = [answer(torch.tensor([i * step, 2.0], dtype=torch.float64)).detach() for i in range(3)]
        expected = torch.stack([(4 * near[1] - 3 * near[0] - near[2]) / (2 * step), torch.zeros_like(near[0])])
        close = {"atol": 1e-6, "rtol": 1e-6} if dtype == torch.float64 else {"atol": 1e-4, "rtol": 1e-4}
        weights = torch.tensor([0.0, 2.0], dtype=dtype, requires_grad=True)
        torch.testing.assert_close(answer(weights).double(), near[0], **close)
        (slope,) = torch.autograd.grad(answer(weights), weights)
        torch.testing.assert_close(slope.double(), expected, **close)
        torch.testing.assert_close(torch.func.grad(answer)(weights.detach()), slope)
        (of_mean,) = torch.autograd.grad(answer(weights) / 10**6, weights)
        torch.testing.assert_close(of_mean * 10**6, slope, **close)

    @pytest.mark.parametrize(("dtype", "size"), [(torch.float32, 50), (torch.float64, 600)])
    @pytest.mark.parametrize("learnt", [True, False])
    def test_a_part_of_weight_zero_adds_nothing_to_small_probabilities(self, dtype, size, learnt):
        parts = [sp.constrain(torch.full((2,), value, dtype=dtype), "a | b") for value in (size, -size)]
        p = sp.distributions.mixture(parts, torch.tensor([0.0, 1.0], dtype=dtype, requires_grad=learnt))
        torch.testing.assert_close(p.log_prob(torch.ones(2)), parts[1].log_prob(torch.ones(2)))

    def test_conditioned_mixtures_weigh_by_the_evidence(self):
        circuit = sp.compile(sp.at_least(1, list("abc")))
        parts = [layer_of(kind, circuit, 3)(torch.zeros(3, dtype=torch.float64)) for kind in ("spl", "product")]
        p = sp.distributions.mixture(parts)
        evidence = torch.tensor([NAN, 1.0, NAN], dtype=torch.float64)
        table = Table.of(p).condition(evidence)
        torch.testing.assert_close(p.condition(evidence).mean, table.mean)
        torch.testing.assert_close(
            sp.distributions.mixture([part.condition(evidence) for part in parts]).mean,
            sum(part.condition(evidence).mean for part in parts) / 2,
        )

    @pytest.mark.parametrize("observed", [False, True])
    def test_a_mixture_of_one_part_is_that_part(self, observed):
        part = sp.constrain(torch.tensor([[0.4, -1.0, 2.0]], dtype=torch.float64), sp.at_least(1, list("abc")))
        part = part.condition(torch.tensor([[NAN, NAN, 1.0]], dtype=torch.float64)) if observed else part
        p, y = sp.distributions.mixture([part]), torch.tensor([[1.0, 0, 1]], dtype=torch.float64)
        torch.testing.assert_close(p.log_partition, torch.zeros(1, dtype=torch.float64))
        torch.testing.assert_close(p.log_prob(y), part.log_prob(y))
        torch.testing.assert_close(p.expected_f1(y), part.expected_f1(y))
        torch.testing.assert_close(p.mean, part.mean)
        torch.testing.assert_close(p.entropy(), part.entropy())
        torch.testing.assert_close(p.decode_with_bound("f1"), part.decode_with_bound("f1"))
        torch.testing.assert_close(p.log_marginal(y), part.log_prob(y))

    def test_f1_and_projection_work_on_mixtures(self, monkeypatch):
        circuit = sp.compile(sp.at_least(1, list("abc")))
        p = sp.distributions.mixture(
            [layer_of(kind, circuit, 3)(torch.zeros(2, 3, dtype=torch.float64)) for kind in ("spl", "product")]
        )
        probs, states = Table.of(p).probs, oracle.all_states(3)
        y = torch.tensor([1.0, 0, 1], dtype=torch.float64)
        f1 = 2 * (states * y).sum(-1) / (states.sum(-1) + 2)
        torch.testing.assert_close(p.expected_f1(y.expand(2, 3)), probs @ f1)
        assert p.project(torch.zeros(2, 3)).sum(-1).eq(1).all()
        monkeypatch.setattr(Domain, "can_be_listed", lambda self, most=0: False)
        assert p.decode("f1").shape == (2, 3)

    @pytest.mark.parametrize(
        ("make", "message"),
        [
            (lambda p, q: sp.distributions.mixture([]), "a mixture needs at least one distribution"),
            (lambda p, q: sp.distributions.mixture([p, q]), "a mixture needs distributions over the same circuit"),
            (lambda p, q: sp.distributions.mixture([p, p], [1.0]), r"expected 2 weights, got shape \(1,\)"),
            (
                lambda p, q: sp.distributions.mixture([p, p], [1.0, -1.0]),
                "weights must be finite, not negative, and not all zero",
            ),
            (
                lambda p, q: sp.distributions.mixture([p, p], torch.ones(7, 2)),
                r"weights of shape \(7, 2\) do not fit batch \(2,\)",
            ),
            (
                lambda p, q: sp.distributions.mixture([p, p.condition(torch.tensor([1.0, NAN]))]),
                "a mixture needs distributions with",
            ),
        ],
    )
    def test_refusals(self, make, message):
        p, q = sp.SPL(3, "a | b")(torch.zeros(2, 3)), sp.SPL(3, "a | ~b")(torch.zeros(2, 3))
        with pytest.raises(ValueError, match=f"^{message}"):
            make(p, q)


@pytest.mark.parametrize("q", ["hmm", "vtree"])
@pytest.mark.parametrize("rebuilt_first", [False, True])
def test_a_rebuilt_circuit_is_the_same_constraint(q: str, rebuilt_first: bool) -> None:
    """q="hmm" needs a variable order, so the layer rebuilds a circuit that has none."""
    circuit = sp.compile("(a -> b) & (c -> d) & (a | c | e)", backend="topdown")
    layers = [sp.SPL(3, circuit).double(), sp.ProductSPL(3, circuit, q=q, units=2).double()]
    assert layers[0].circuit != layers[1].circuit
    assert sp.violations(layers[1], torch.tensor([[1, 0, 0, 0, 0]]))[0].rule == "a -> b"
    parts = [layer(torch.randn(2, 3, dtype=torch.float64)) for layer in layers][:: -1 if rebuilt_first else 1]
    p = sp.distributions.mixture(parts, [0.3, 0.7])
    y = oracle.all_states(5)[:, None].expand(-1, 2, -1)
    probs = 0.3 * parts[0].log_prob(y).exp() + 0.7 * parts[1].log_prob(y).exp()
    torch.testing.assert_close(p.log_prob(y).exp(), probs)
    torch.testing.assert_close(p.mean, (probs[..., None] * y).sum(0))
    torch.testing.assert_close(p.top_k(3)[1].exp(), probs.T.topk(3).values)
    torch.testing.assert_close(p.entropy(), torch.special.entr(probs).sum(0))
    given = probs * y[..., 0]
    torch.testing.assert_close(p.condition({"a": 1}).mean, (given[..., None] * y).sum(0) / given.sum(0)[:, None])
    torch.testing.assert_close(p.log_prob_of("a & e").exp(), (given * y[..., 4]).sum(0))
    assert p.support.check(p.sample((20,))).all()


def test_circuits_that_were_compiled_separately() -> None:
    parts = [sp.SPL(3, sp.compile("a -> b", backend=name))(torch.zeros(2, 3)) for name in ("sdd", "topdown")]
    if parts[0].circuit != parts[1].circuit:
        with pytest.raises(
            ValueError, match=r"same circuit: if the rules are the same, pass one sp\.compile\(\.\.\.\)"
        ):
            sp.distributions.mixture(parts)
