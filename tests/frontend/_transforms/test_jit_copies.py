"""Copies of jitted functions, and jitted functions in pickles."""

from __future__ import annotations

import copy
import pickle

import pytest

import axir
import axir.numpy as jnp


@axir.jit
def doubled(x):
    return x + x


def _twice(x):
    return x + x


def scaled(x, count):
    return x * count


scale = axir.jit(scaled, static_argnums=1)


class Model:
    def __init__(self, weight):
        self.weight = weight
        self.step = axir.jit(self._step)

    def _step(self, x):
        return self.weight * x

    @axir.jit
    def shift(x):
        return x + 1


@pytest.mark.parametrize("make", [copy.copy, copy.deepcopy])
def test_a_copy_does_the_same_with_the_same_programs(make):
    twice = axir.jit(_twice)
    twice(2.0)
    same = make(twice)
    assert same is not twice
    assert same._entries is twice._entries
    assert same(2.0) == 4.0
    assert (same.__name__, same.__module__) == ("_twice", __name__)
    assert make(scale)(2.0, 3) == 6.0


@pytest.mark.parametrize("make", [copy.copy, copy.deepcopy])
def test_a_copy_may_be_made_while_something_is_traced(make):
    @axir.jit
    def outer(x):
        return make(doubled)(x) + doubled(x)

    assert outer(1.5) == 6.0
    assert axir.grad(lambda x: make(doubled)(x))(1.0) == 2.0


def test_attributes_go_with_a_copy():
    tagged = axir.jit(scaled, static_argnums=1)
    tagged.tag = "mine"
    assert copy.deepcopy(tagged).tag == "mine"


def test_a_method_of_a_copied_object_is_that_of_the_copy():
    model = Model(2.0)
    other = copy.deepcopy(model)
    other.weight = 5.0
    assert (float(model.step(1.0)), float(other.step(1.0))) == (2.0, 5.0)


def test_the_device_of_a_copy_is_the_same_object():
    device = axir.devices()[0]
    placed = axir.jit(lambda x: x, device=device)
    assert copy.deepcopy(placed)._device is device
    assert pickle.loads(pickle.dumps(device)) is device


def test_a_pickle_holds_the_name_or_the_function_with_its_options():
    assert pickle.loads(pickle.dumps(doubled)) is doubled
    assert pickle.loads(pickle.dumps(Model.shift)) is Model.shift
    again = pickle.loads(pickle.dumps(scale))
    assert again is not scale
    assert again(jnp.float32(2), 4) == 8.0
    with pytest.raises((pickle.PicklingError, AttributeError), match="lambda"):
        pickle.dumps(axir.jit(lambda x: x))
