"""Callers pass by keyword: parameters have JAX's names, kinds, and defaults where JAX has them.

They follow the installed JAX, or the newest one, which takes more keywords.
"""

from __future__ import annotations

import importlib
import inspect
import json
from collections.abc import Callable
from typing import Any

import jax
import jax.random
import pytest
from support import jax_parity
from support.jax_names import function

import axir

MODULES = (
    "lax", "lax.linalg", "numpy", "numpy.linalg", "numpy.fft", "scipy.linalg", "scipy.special",
    "scipy.fft", "scipy.signal", "nn", "nn.initializers", "random", "ops", "tree",
    "", "ad_checkpoint", "custom_batching", "custom_derivatives", "dtypes", "extend.core",
    "flatten_util", "tree_util",
)  # fmt: skip

NEWEST = json.loads(jax_parity.NEWEST.read_text())
_UFUNC = "JAX's ufunc object: x and y are positional, and it takes neither an out array nor where"
# Why a signature differs, by module and name.
_DECORATOR = "without the function it is a decorator with options"
_SETTING = "a setting is set to something"
EXCEPTIONS = {
    "checkpoint": _DECORATOR,
    "default_device": _SETTING,
    "default_matmul_precision": _SETTING,
    "default_prng_impl": _SETTING,
    "extend.core.find_top_trace": "the argument is not used, so it may be left out",
    "extend.core.jaxpr_as_fun": "JAX shows the arguments of the function that it returns",
    "extend.core.unmapped_aval": "there is no mesh",
    "jit": "there are no shardings",
    "legacy_prng_key": _SETTING,
    "numpy_dtype_promotion": _SETTING,
    "numpy_rank_promotion": _SETTING,
    "pure_callback": "`vectorized` of older programs is accepted as well",
    "remat": _DECORATOR,
    "threefry_partitionable": _SETTING,
    "transfer_guard_device_to_device": _SETTING,
    "transfer_guard_device_to_host": _SETTING,
    "transfer_guard_host_to_device": _SETTING,
    "lax.argmax": "index_dtype may be left out: int32",
    "lax.argmin": "index_dtype may be left out: int32",
    "lax.cond": "`linear` of older programs is accepted as well",
    "lax.convert_element_type": "weak_type makes a weakly typed result",
    "lax.random_gamma_grad": "JAX's wrapper hides the names: a, sample",
    "numpy.array": "the options may be passed by position, as in NumPy",
    "numpy.clip": "the older names a, a_min, a_max are accepted as well",
    "numpy.einsum": "_dot_general is private",
    "numpy.set_printoptions": "it is NumPy's own",
}


def _described(function: Callable[..., Any]) -> list[tuple[str, str, bool]]:
    """Returns name, kind and whether there is a default of each parameter."""
    described = []
    for p in inspect.signature(function).parameters.values():
        name = "" if p.kind in (p.POSITIONAL_ONLY, p.VAR_POSITIONAL) else p.name
        described.append((name, p.kind.name, p.default is not p.empty))
    return described


def _newest(path: str) -> list[tuple[str, str, bool]] | None:
    """Returns the parameters of a function of the newest JAX, which are written down."""
    module, _, name = f"jax.{path}".rpartition(".")
    recorded = NEWEST["modules"].get(module, {}).get(name)
    return None if recorded is None else [_read(text) for text in recorded]


def _read(parameter: str) -> tuple[str, str, bool]:
    bare = parameter.rstrip("=")
    marks = {
        "**": "VAR_KEYWORD",
        "*": "VAR_POSITIONAL",
        "/": "POSITIONAL_ONLY",
        ",": "KEYWORD_ONLY",
    }
    mark = next((mark for mark in marks if bare.startswith(mark)), "")
    kind = marks.get(mark, "POSITIONAL_OR_KEYWORD")
    name = "" if kind in ("POSITIONAL_ONLY", "VAR_POSITIONAL") else bare.removeprefix(mark)
    return name, kind, parameter.endswith("=")


def _is_ufunc(function: Any) -> bool:
    return isinstance(function, jax.numpy.ufunc)


def _pairs() -> list[str]:
    names = []
    for module in MODULES:
        ours = importlib.import_module(f"axir.{module}".rstrip("."))
        theirs = importlib.import_module(f"jax.{module}".rstrip("."))
        for name in dir(theirs):
            mine, other = getattr(ours, name, None), getattr(theirs, name)
            if name.startswith("_") or not callable(mine) or not callable(other):
                continue
            if not inspect.isclass(mine) and not inspect.isclass(other) and not _is_ufunc(other):
                names.append(f"{module}.{name}".lstrip("."))
    return names


@pytest.mark.parametrize("path", _pairs())
def test_parameters_have_jax_names(path: str) -> None:
    try:
        theirs = _described(function(jax, path))
    except ValueError:  # written in C
        pytest.skip(f"jax.{path} has no signature")
    ours = _described(function(axir, path))
    if path in EXCEPTIONS:
        assert ours not in (theirs, _newest(path)), f"{path} is no exception any more"
    elif ours != _newest(path):
        assert ours == theirs


@pytest.mark.parametrize("name", ["add", "maximum", "logical_and", "logaddexp"])
def test_ufuncs_take_two_operands_by_position(name: str) -> None:
    kinds = [kind for _, kind, _ in _described(getattr(axir.numpy, name))]
    assert kinds == ["POSITIONAL_ONLY"] * 2, _UFUNC


@pytest.mark.parametrize(
    ("path", "arguments", "option"),
    [
        ("lax.sin", (1.0,), "accuracy"),
        ("lax.reduce", (axir.numpy.ones(2), 0.0, axir.lax.add, (0,)), "out_sharding"),
    ],
)
def test_options_without_a_choice_take_only_none(
    path: str, arguments: tuple[Any, ...], option: str
) -> None:
    ours = function(axir, path)
    ours(*arguments, **{option: None})
    with pytest.raises(axir.errors.ParameterError, match="Leave the argument out"):
        ours(*arguments, **{option: "other"})


def test_operands_pass_by_keyword() -> None:
    lax = axir.lax
    assert float(lax.clamp(min=0.0, x=3.0, max=2.0)) == 2.0
    assert float(lax.nextafter(x1=0.0, x2=1.0)) > 0
    assert float(lax.zeta(x=2.0, q=1.0)) == pytest.approx(1.6449341)
    assert float(lax.polygamma(m=0.0, x=1.0)) == pytest.approx(-0.5772157)
    assert float(lax.igamma(a=1.0, x=0.0)) == 0.0
    assert int(axir.numpy.gcd(x1=4, x2=6)) == 2
    assert bool(axir.numpy.isreal(x=1.0))
