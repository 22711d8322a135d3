"""Donated arguments: reuse of memory, deletion, and arrays that must stay unchanged."""

from __future__ import annotations

import numpy as np
import pytest

import axir
import axir.numpy as jnp
from axir.dialect.core import errors
from axir.dialect.core.config import config

SIZE = 1 << 16


@pytest.fixture(autouse=True, params=["iree", "native", "auto"])
def compiler(request: pytest.FixtureRequest) -> str:
    config.update("axir_compiler", request.param)
    return request.param


# IREE's programs overwrite their arguments; others write to separate memory.
overwrites = pytest.mark.parametrize("compiler", ["iree"], indirect=True)


def _address(x) -> int:
    """Returns where the elements lie, without letting the array know that the host looks."""
    return x._buffer.view.map().asarray((x.nbytes,), np.dtype(np.uint8)).ctypes.data


@axir.jit
def make(x):
    return jnp.full(SIZE, x), jnp.full(SIZE, -x)


def step(x, y):
    # An update in place; a result of arithmetic gets separate memory.
    return x.at[3].set(7), y.at[1:3].set(2)


@overwrites
def test_results_take_the_memory_of_donated_arrays_in_every_call() -> None:
    f = axir.jit(step, donate_argnums=(0, 1))
    x, y = make(3.0)
    places = {_address(x), _address(y)}
    for _ in range(60):  # the first calls, calls of each driver, and quick ones
        before = x, y
        x, y = f(x, y)
        assert {_address(x), _address(y)} == places
        assert all(z.is_deleted() for z in before)
    assert x[:5].tolist() == [3, 3, 3, 7, 3]
    assert y[:4].tolist() == [-3, 2, 2, -3]


def test_what_the_host_has_seen_does_not_change() -> None:
    f = axir.jit(lambda x: x + 1, donate_argnums=0)
    for _ in range(40):
        x, _ = make(3.0)
        seen = np.asarray(x)
        assert f(x)[0] == 4
        assert x.is_deleted()
        assert (seen == 3).all()


@overwrites
def test_arrays_that_share_the_memory_are_deleted_as_well() -> None:
    f = axir.jit(lambda x: x + 1, donate_argnums=0)
    for _ in range(40):
        x, _ = make(3.0)
        other = axir.device_put(x, axir.devices()[0])
        f(x)
        with pytest.raises(errors.DeletedArrayError):
            np.asarray(other)


def test_an_array_donated_twice_or_also_used_is_refused_in_every_call() -> None:
    both = axir.jit(lambda x, y: (x + y, x - y), donate_argnums=(0, 1))
    one = axir.jit(lambda x, y: x + y, donate_argnums=1)
    for _ in range(30):
        both(*make(1.0))
        one(*make(1.0))
    for f in (both, one):
        x, _ = make(1.0)
        with pytest.raises(errors.DonationError, match="is argument 1 .*donated, and argument 0"):
            f(x, x)
        assert not x.is_deleted()


def test_deleted_arrays_are_named_in_quick_calls() -> None:
    f = axir.jit(lambda x: x + 1, donate_argnums=0)
    for _ in range(30):
        x, _ = make(1.0)
        f(x)
    with pytest.raises(errors.DeletedArrayError, match="has been deleted or donated"):
        f(x)
