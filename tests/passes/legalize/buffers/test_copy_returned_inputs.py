"""`copy-returned-inputs`: results do not share memory with arguments."""

from __future__ import annotations

import numpy as np
import pytest
from support.stablehlo_runner import Builder, Compiled, Example, build, deviations, run_examples

from axir.dialect.builders import stablehlo as hlo
from axir.passes.framework.pipeline import run_passes

X = np.arange(6, dtype=np.float32)


def overwrite(x, start):
    """Works in place: not protected here."""
    flat = hlo.reshape(x, (6,))
    return hlo.dynamic_update_slice(flat, hlo.constant(np.full(2, 99, X.dtype)), [start])


FUNCTIONS: dict[str, Builder] = {
    "itself": lambda x: x,
    "twice": lambda x: [x, x],
    "reshaped": lambda x: hlo.reshape(x, (2, 3)),
    "cast": lambda x: hlo.bitcast_convert(hlo.bitcast_convert(x, np.int32), np.float32),
    "behind_a_barrier": lambda x: hlo.optimization_barrier(x),
    "computed": lambda x: hlo.add(x, x),
    "put_over_all": lambda x: hlo.dynamic_update_slice(hlo.add(x, x), x, [hlo.constant(START)]),
    "put_over_all_at_a_computed_place": lambda x: hlo.dynamic_update_slice(
        hlo.add(x, x), x, [place_of(x)]
    ),
    "all_of_it": lambda x: hlo.dynamic_slice(x, [place_of(x)], (6,)),
    "rounded_to_what_it_is": lambda x: hlo.reduce_precision(x, 8, 23),
}
START = np.int32(2)


def place_of(x):
    return hlo.convert(hlo.reshape(hlo.slice(x, [1], [2]), ()), np.int32)


def is_shared(compiled: Compiled, name: str) -> bool:
    """Whether overwriting the function's result changes its argument."""
    x = compiled.put(X)
    result = compiled.call_on_device(name, x)[-1]
    shape = "matrix" if name == "reshaped" else "vector"
    (changed,) = compiled.call_on_device(f"overwrite_{shape}", result, compiled.put(START))
    assert (changed.to_host()[2:4] == 99).all()
    return not np.array_equal(x.to_host(), X)


def compile_with(passes: str) -> Compiled:
    functions = {name: ((X,), function) for name, function in FUNCTIONS.items()}
    functions["overwrite_vector"] = ((X, START), overwrite)
    functions["overwrite_matrix"] = ((X.reshape(2, 3), START), overwrite)
    module = build(functions)
    if passes:
        run_passes(module, passes)
    return Compiled(module)


@pytest.fixture(scope="module")
def compiled() -> Compiled:
    return compile_with("copy-returned-inputs")


@pytest.mark.parametrize("name", FUNCTIONS)
def test_results_are_copies(compiled: Compiled, name: str) -> None:
    assert not is_shared(compiled, name)


def test_values(compiled: Compiled) -> None:
    for result in compiled("twice", X):
        np.testing.assert_array_equal(result, X)
    np.testing.assert_array_equal(compiled("reshaped", X)[0], X.reshape(2, 3))


def test_unsigned_results() -> None:
    x = np.array([1, 200], np.uint8)
    example = Example("f", (x,), lambda v: hlo.reshape(v, (2, 1)), x[:, None])
    assert deviations(run_examples([example], "copy-returned-inputs")["f"], example) == []


def test_without_the_pass_results_are_the_arguments() -> None:
    compiled = compile_with("")
    assert is_shared(compiled, "itself")
    assert is_shared(compiled, "reshaped")
    assert is_shared(compiled, "put_over_all_at_a_computed_place")
    assert is_shared(compiled, "all_of_it")
    assert is_shared(compiled, "rounded_to_what_it_is")
