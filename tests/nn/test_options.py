"""The options of the layers: one order, one word for one idea, gates of one's own, devices, types."""

import inspect

import numpy as np
import pytest
import torch
from torch import nn

import semprola as sp

PETS = "(cat -> animal) & (dog -> animal)"
MAKERS = {
    "spl": lambda **options: sp.SPL(6, PETS, **options),
    "spl-units": lambda **options: sp.SPL(6, PETS, units=2, **options),
    "product": lambda **options: sp.ProductSPL(6, PETS, **options),
    "hmm": lambda **options: sp.ProductSPL(6, PETS, q="hmm", **options),
    "fil": lambda **options: sp.baselines.FIL(6, ["cat", "animal", "dog"], **options),
}


@pytest.fixture(params=MAKERS.values(), ids=MAKERS)
def make(request):
    return request.param


class TestNames:
    def test_options_are_keywords_in_one_order(self):
        order = ["components", "units", "mixing", "q", "gate", "dropout", "labels", "device", "dtype"]
        for kind in (sp.SPL, sp.ProductSPL, sp.baselines.FIL):
            parameters = list(inspect.signature(kind).parameters.values())
            assert all(p.kind is p.KEYWORD_ONLY for p in parameters[2:])
            known = [p.name for p in parameters[2:] if p.name in order]
            assert known == sorted(known, key=order.index)

    def test_the_papers_words_still_work(self):
        spl, product = sp.SPL(3, PETS, replicas=2), sp.ProductSPL(3, PETS, mixtures=3)
        assert spl.components == spl.replicas == 2
        assert product.components == product.mixtures == 3
        assert "components=2" in repr(spl)

    @pytest.mark.parametrize(
        ("kind", "options", "message"),
        [
            (sp.SPL, {"components": 2, "replicas": 2}, "components and replicas are two names for the same number"),
            (
                sp.ProductSPL,
                {"components": 1, "mixtures": 1},
                "components and mixtures are two names for the same number",
            ),
            (sp.SPL, {"components": 0}, "components must be a positive whole number, not 0"),
            (sp.ProductSPL, {"units": 2}, "units= is for q='hmm' and q='vtree'"),
            (sp.SPL, {"dropout": 1.0}, "dropout must be a number from 0 to below 1, not 1.0"),
            (sp.SPL, {"gate": nn.Identity(), "dropout": 0.1}, "dropout= is for the layer's own gate"),
        ],
    )
    def test_refusals(self, kind, options, message):
        with pytest.raises(ValueError, match=f"^{message}"):
            kind(4, PETS, **options)

    @pytest.mark.parametrize("gate", [None, 5.0, "wide", b"8", object])
    def test_a_gate_is_widths_or_a_module(self, make, gate):
        given = {object: object()}.get(gate, gate)
        message = r"^gate must be a width, a list of widths, a module or a function that makes one, not .{1,40}$"
        with pytest.raises(TypeError, match=message):
            make(gate=given)

    @pytest.mark.parametrize("kind", [sp.SPL, sp.ProductSPL])
    def test_labels_are_a_list_of_names(self, kind):
        with pytest.raises(sp.LabelError, match=r"^labels: expected a list of names, not 'abc'$"):
            kind(4, "a & (b | c)", labels="abc")

    def test_labels_fix_the_column_order(self):
        for layer in (
            sp.SPL(3, PETS, labels=["dog", "cat", "animal"]),
            sp.ProductSPL(3, PETS, labels=["dog", "cat", "animal"]),
        ):
            assert layer.labels == ("dog", "cat", "animal")
            p = layer(torch.zeros(3))
            assert p.log_prob(torch.tensor([1.0, 0, 0])) == -torch.inf
            assert p.log_prob(torch.tensor([0.0, 0, 1])) > -torch.inf

    def test_labels_of_a_compiled_circuit(self):
        circuit = sp.compile(PETS)
        assert sp.SPL(3, circuit, labels=["animal", "dog", "cat"]).labels == ("animal", "dog", "cat")
        with pytest.raises(sp.LabelError):
            sp.SPL(3, circuit, labels=["animal", "dog"])


class TestGate:
    def test_ends_in_a_linear_layer_and_drops_out(self, make):
        layer = make(gate=(8, 5), dropout=0.5)
        last = list(layer.gate.modules())[-1]
        assert isinstance(last, nn.Linear)
        assert last.out_features == layer.num_gate_outputs
        assert sum(isinstance(module, nn.Dropout) for module in layer.modules()) == 2
        z = torch.randn(4, 6)
        assert not torch.equal(layer(z).mean, layer(z).mean)
        layer.eval()
        assert torch.equal(layer(z).mean, layer(z).mean)

    @pytest.mark.parametrize("components", [1, 3])
    def test_a_module_of_ones_own(self, make, components):
        plain = make(components=components, gate=(7,))
        own = nn.Sequential(nn.Linear(6, 7), nn.ReLU(), nn.Linear(7, plain.num_gate_outputs))
        own.load_state_dict(dict(zip(own.state_dict(), plain.gate.state_dict().values(), strict=True)))
        layer = make(components=components, gate=own)
        z = torch.randn(2, 3, 6)
        y = plain(z).mode
        torch.testing.assert_close(layer(z).log_prob(y), plain(z).log_prob(y))
        layer(z).log_prob(y).sum().backward()
        assert own[0].weight.grad is not None

    @pytest.mark.parametrize("components", [1, 2])
    def test_the_identity_takes_the_parameters_themselves(self, make, components):
        plain = make(components=components)
        layer = make(components=components, gate=nn.Identity())
        z = torch.randn(4, 6)
        assert not list(layer.parameters())
        torch.testing.assert_close(layer(plain.gate(z)).mean, plain(z).mean)

    def test_a_wrong_width_says_which_is_right(self, make):
        layer = make(gate=nn.Identity())
        with pytest.raises(
            ValueError, match=rf"^the gate returned \(2, 99\), but the layer needs \(2, {layer.num_gate_outputs}\)"
        ):
            layer(torch.zeros(2, 99))

    @pytest.mark.parametrize("gate", [(), (8,), nn.Linear])
    @pytest.mark.parametrize("z", [[1.0] * 6, np.zeros((2, 6), np.float32), None])
    def test_features_that_are_no_tensor(self, make, gate, z):
        layer, name = make(gate=gate), type(z).__name__
        message = (
            rf"^z must be a tensor of features \[\*batch, 6\], not {name}: "
            r"use torch.as_tensor\(z, dtype=torch.float32\)$"
        )
        with pytest.raises(TypeError, match=message):
            layer(z)
        if isinstance(layer, sp.SPL):
            with pytest.raises(TypeError, match=message):
                layer(z, scored=torch.zeros(1, 3))

    def test_a_function_of_both_widths(self, make):
        layer = make(components=2, gate=nn.Linear)
        assert type(layer.gate) is nn.Linear
        assert layer(torch.zeros(5, 6)).mean.shape == (5, 3)
        with pytest.raises(TypeError, match=r"^gate must return an nn.Module, not int$"):
            make(gate=lambda before, after: after)

    def test_hooks_and_parametrizations_act(self, make):
        layer, calls = make(gate=(4,)), []
        layer.gate.register_forward_hook(lambda *_: calls.append("gate"))
        layer.gate.output.register_forward_hook(lambda module, args, out: 0 * out)
        z = torch.randn(3, 6)
        p = layer(z)
        p.log_prob(p.mode)
        assert calls == ["gate"]
        torch.testing.assert_close(p.mean, layer(torch.randn(3, 6)).mean)


class TestParameters:
    def test_reset_draws_new_parameters_and_starts_uniform_again(self, make):
        layer = make(gate=(4,))
        nn.init.constant_(layer.gate.output.bias, 3.0)
        before = [w.detach().clone() for w in layer.parameters()]
        layer.reset_parameters()
        assert all(not torch.equal(a, b) for a, b in zip(before, layer.parameters(), strict=True))
        again = make(gate=(4,))
        if layer.units == 1:
            assert torch.equal(layer.gate.output.bias, again.gate.output.bias)

    def test_device_and_dtype(self, make):
        layer = make(gate=(4,), device="meta", dtype=torch.float64)
        assert {(w.device.type, w.dtype) for w in layer.parameters()} == {("meta", torch.float64)}
        layer = layer.to_empty(device="cpu")
        layer.reset_parameters()
        p = layer(torch.zeros(2, 6, dtype=torch.float64))
        assert p.mean.dtype == torch.float64
        assert p.mean.isfinite().all()

    @pytest.mark.parametrize(
        "state", [None, "x", torch.zeros(3, dtype=torch.uint8), torch.zeros(16), {"a": 1}], ids=repr
    )
    def test_a_damaged_fingerprint(self, make, state):
        layer = make()
        saved = layer.state_dict()
        saved["_extra_state"] = state
        with pytest.raises(sp.FormatError, match=r"^the fingerprint of the circuit in this state dict is damaged"):
            layer.load_state_dict(saved)

    def test_a_gate_of_ones_own_is_reset_where_it_can_be(self):
        layer = sp.SPL(4, PETS, gate=nn.Linear)
        layer.reset_parameters()
        p = layer(torch.zeros(4))
        torch.testing.assert_close(p.log_prob(p.enumerate_support()).exp(), torch.full((5,), 0.2))
        sp.SPL(4, PETS, gate=nn.Identity()).reset_parameters()
