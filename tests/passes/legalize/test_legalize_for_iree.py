"""`legalize-for-iree`: all passes together."""

from __future__ import annotations

import numpy as np
from support.stablehlo_runner import Compiled, Example, build, deviations, parse, run_examples

from axir.dialect.builders import stablehlo as hlo
from axir.passes.framework.pipeline import run_passes
from axir.passes.legalize.rewriting import operations_in_order

RNG = np.random.default_rng(0)
X = RNG.normal(size=(6, 4)).astype(np.float32)
ROWS = np.array([[5], [9], [-1]], np.int32)
UPDATES = RNG.normal(size=(3, 4)).astype(np.float32)


def program(x, rows, updates):
    """Powers, indices out of bounds, a scatter into an argument, complex padding, saturation."""
    raised = hlo.power(x, hlo.scalar_like(x, 3.0))
    gathered = hlo.gather(
        hlo.sine(raised),
        rows,
        offset_dims=(1,),
        collapsed_slice_dims=(0,),
        start_index_map=(0,),
        index_vector_dim=1,
        slice_sizes=(1, 4),
    )
    (scattered,) = hlo.scatter(
        [x],
        rows,
        [updates],
        hlo.add,
        update_window_dims=(1,),
        inserted_window_dims=(0,),
        scatter_dims_to_operand_dims=(0,),
        index_vector_dim=1,
    )
    padded = hlo.pad(hlo.complex(x, x), hlo.constant(np.complex64(0)), (1, 0), (0, 0))
    saturated = hlo.convert(hlo.multiply(x, hlo.scalar_like(x, 1e12)), np.int32)
    return [gathered, scattered, hlo.abs(padded), saturated]


def expected() -> list[np.ndarray]:
    wide = X.astype(np.float64)
    sines = np.sin((wide**3).astype(np.float32).astype(np.float64)).astype(np.float32)
    scattered = X.copy()
    scattered[5] += UPDATES[0]
    sizes = np.concatenate([np.zeros((1, 4)), np.abs(wide) * np.sqrt(2)]).astype(np.float32)
    limits = np.iinfo(np.int32)
    saturated = np.where(X > 0, limits.max, limits.min).astype(np.int32)
    return [sines[[5, 5, 0]], scattered, sizes, saturated]


EXAMPLE = Example("f", (X, ROWS, UPDATES), program, expected())


def test_values() -> None:
    results = run_examples([EXAMPLE], "legalize-for-iree")["f"]
    # The sine of a cube inherits the cube's rounding.
    assert deviations(results, EXAMPLE, ulps=16) == []


def test_arguments_do_not_change() -> None:
    module = build({"f": (EXAMPLE.arguments, program)})
    run_passes(module, "legalize-for-iree")
    compiled = Compiled(module)
    on_device = [compiled.put(argument) for argument in EXAMPLE.arguments]
    compiled.call_on_device("f", *on_device)
    for after, before in zip(on_device, EXAMPLE.arguments, strict=True):
        np.testing.assert_array_equal(after.to_host(), before)


def test_running_it_again_changes_no_values() -> None:
    results = run_examples([EXAMPLE], "legalize-for-iree,legalize-for-iree")["f"]
    assert deviations(results, EXAMPLE, ulps=16) == []


def test_replacements_keep_the_users_line() -> None:
    module = parse(
        """
        func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
          %0 = stablehlo.sine %x : tensor<4xf32> loc("model.py":12:3)
          %1 = stablehlo.power %0, %x : tensor<4xf32> loc("model.py":13:3)
          return %1 : tensor<4xf32>
        }
        """
    )
    run_passes(module, "legalize-for-iree")
    loops = operations_in_order(module.operation, ("linalg.generic",))
    places = [str(loop.location) for loop in loops]
    assert places == ['loc("model.py":12:3)', 'loc("model.py":13:3)']


def test_what_is_right_already_stays() -> None:
    text = """
        func.func @f(%x: tensor<4x4xf32>, %i: tensor<i32>) -> tensor<4x4xf32> {
          %0 = stablehlo.tanh %x : tensor<4x4xf32>
          %1 = stablehlo.dot_general %0, %x, contracting_dims = [1] x [0]
            : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
          %2 = stablehlo.convert %1 : (tensor<4x4xf32>) -> tensor<4x4xf16>
          %3 = stablehlo.convert %2 : (tensor<4x4xf16>) -> tensor<4x4xf32>
          return %3 : tensor<4x4xf32>
        }
        """
    module = parse(text)
    before = str(module)
    run_passes(module, "legalize-for-iree{fuses=false}")
    assert str(module) == before


def test_only_cpus_sort_by_kernels() -> None:
    def sort(x):
        return hlo.sort([x], 0, lambda a, b: hlo.compare(a, b, "LT"))

    for platform, is_kernel in (("cpu", True), ("vulkan", False)):
        module = build({"f": ((X,), sort)})
        run_passes(module, f"legalize-for-iree{{platform={platform}}}")
        assert ("flow.dispatch" in str(module)) is is_kernel
        assert "stablehlo.sort" not in str(module)
