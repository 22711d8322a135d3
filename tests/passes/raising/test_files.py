"""Files that JAX wrote, as text, bytecode and portable artifacts, are loaded and transformed.

Files in `corpus/` never change, so that every file that could be read can always be read.
"""

from __future__ import annotations

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from click.testing import CliRunner
from jax import export

import axir
from axir.cli import cli
from axir.dialect.core.errors import ParseError
from axir.dialect.text.bytecode_shardings import without_foreign_attributes
from axir.dialect.text.parsing import parse_module, read_file
from axir.dialect.text.portable_artifacts import is_portable_artifact, to_stablehlo
from axir.export import load
from axir.passes.framework.errors import RaisingError

CORPUS = Path(__file__).parent / "corpus"
MATRIX = np.array([[3.0, 1.0], [1.0, 2.0]], np.float32)


@pytest.fixture(autouse=True)
def op_by_op():
    with axir.config(jax_disable_jit=True):
        yield


def test_text_with_names() -> None:
    found = load(CORPUS / "classify.mlir")
    assert found.argument_names == ["params['b']", "params['w']", "x"]
    assert found.result_names == ["result['best']", "result['loss']"]
    b, w = np.arange(4, dtype=np.float32), np.ones((3, 4), np.float32)
    x = np.array([0.1, -0.2, 0.4], np.float32)
    best, loss = found.function.evaluate(*map(axir.numpy.asarray, (b, w, x)))
    h = np.tanh(x @ w + b)
    assert int(best) == h.argmax()
    np.testing.assert_allclose(loss, np.log(np.exp(h).sum()), rtol=1e-6)


def test_a_portable_artifact_is_differentiated() -> None:
    found = load(CORPUS / "filtered.mlirbc")
    state, xs = np.ones(2, np.float32), np.ones((4, 2), np.float32)

    def total(state):
        return found(state, xs)[1].sum()

    expected, s = np.zeros(2), state.astype(np.float64)
    for step in range(1, 5):
        s = 0.9 * s + 1
        expected += np.cos(s) * 0.9**step
    np.testing.assert_allclose(axir.grad(total)(axir.numpy.asarray(state)), expected, rtol=1e-5)


def test_a_portable_artifact_with_calls_of_lapack() -> None:
    found = load(CORPUS / "solved.mlirbc")
    solution, lower, eigenvalues = found(MATRIX, np.ones(2, np.float32))
    np.testing.assert_allclose(solution, np.linalg.solve(MATRIX, np.ones(2)), rtol=1e-6)
    np.testing.assert_allclose(lower, np.linalg.cholesky(MATRIX), rtol=1e-6)
    np.testing.assert_allclose(eigenvalues, np.linalg.eigvalsh(MATRIX), rtol=1e-6)


def everything(x, i, image, kernel, z):
    window = (1, 2, 2, 1), (1, 2, 2, 1), "SAME"
    layout = ("NHWC", "HWIO", "NHWC")
    padded = jnp.pad(x, 1), jax.lax.reduce_precision(x, 5, 10), x.astype(jnp.bfloat16)
    convolved = jax.lax.conv_general_dilated(
        image, kernel, (1, 2), "SAME", rhs_dilation=(1, 2), dimension_numbers=layout
    )
    pooled = jax.lax.reduce_window(image, -jnp.inf, jax.lax.max, *window)
    chosen = jax.lax.cond(x.sum() > 0, jnp.sin, jnp.cos, x)
    counted = jax.lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] * 2), (0, x))
    moved = x[i], x.at[i].add(1.0), jnp.sort(x), *jax.lax.top_k(x, 2), jnp.flip(x, 0)
    bits = jax.lax.rng_bit_generator(jnp.zeros(4, jnp.uint32), (3,))[1]
    return *padded, convolved, pooled, chosen, *counted, *moved, bits, jnp.fft.rfft(x), z * 2


def test_all_kinds_of_attributes_survive_portable_artifacts(tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    shapes = ((3, 3), (2, 4, 4, 3), (2, 2, 3, 4))
    x, image, kernel = (generator.standard_normal(s).astype(np.float32) for s in shapes)
    arguments = (x, np.array([0, 2], np.int32), image, kernel, np.ones(2, np.complex64))
    exported = export.export(jax.jit(everything))(*arguments)
    text, artifact = tmp_path / "text.mlir", tmp_path / "artifact.mlirbc"
    text.write_text(exported.mlir_module())
    artifact.write_bytes(exported.mlir_module_serialized)
    assert is_portable_artifact(read_file(artifact))
    assert not is_portable_artifact(read_file(text))
    found, same = load(artifact), load(text)
    for ours, theirs, again in zip(
        found(*arguments), jax.jit(everything)(*arguments), same(*arguments), strict=True
    ):
        np.testing.assert_array_equal(np.asarray(ours), np.asarray(again))
        wide = [np.asarray(v).astype(np.complex128) for v in (ours, theirs)]
        np.testing.assert_allclose(*wide, rtol=1e-5, atol=1e-5)


def test_an_artifact_that_stablehlo_does_not_have() -> None:
    kind = "!vhlo.witness_v1"
    nothing = "#vhlo.array_v1<[]>"
    module = parse_module(
        f'"vhlo.func_v1"() <{{arg_attrs = {nothing}, res_attrs = {nothing}, function_type = '
        f'#vhlo.type_v1<!vhlo.func_v1<({kind}) -> {kind}>>, sym_name = #vhlo.string_v1<"main">, '
        f'sym_visibility = #vhlo.string_v1<"">}}> ({{\n^bb0(%x: {kind}):\n'
        f'"vhlo.return_v1"(%x) : ({kind}) -> ()\n}}) : () -> ()'
    )
    with pytest.raises(ParseError, match="of this portable artifact has no form in StableHLO"):
        to_stablehlo(module)


def test_damaged_bytecode_is_left_to_the_parser() -> None:
    data = (CORPUS / "solved.mlirbc").read_bytes()
    assert b"sdy\0" in data
    for length in range(4, len(data), 97):
        assert isinstance(without_foreign_attributes(data[:length]), bytes)
    whole = without_foreign_attributes(data)
    assert without_foreign_attributes(whole) == whole


# The command line -------------------------------------------------------------------------------


def axir_command(*arguments: object) -> str:
    result = CliRunner().invoke(cli, [str(x) for x in arguments], prog_name="axir")
    assert result.exit_code == 0, result.output
    return result.stdout


def test_verbs_take_what_jax_wrote(tmp_path: Path) -> None:
    path = CORPUS / "filtered.mlirbc"
    assert "StableHLO module" in axir_command("inspect", path)
    raised = tmp_path / "raised.mlir"
    axir_command("opt", path, "--to", "jaxpr", "-o", raised)
    assert '"jaxpr.scan"' in raised.read_text()
    tangent = tmp_path / "tangent.mlir"
    axir_command("opt", path, "-p", "jvp,simplify", "-o", tangent)
    values = "state=1,1", "xs=ones:"
    eager = axir_command("run", path, *values, "--eager")
    assert eager == axir_command("run", raised, *values, "--eager")
    assert "dstate" in axir_command("inspect", tangent)


def test_calls_of_lapack_are_compiled_by_raising_them(tmp_path: Path) -> None:
    out = tmp_path / "y.npy", tmp_path / "l.npy", tmp_path / "w.npy"
    outputs = [option for path in out for option in ("--out", path)]
    axir_command("run", CORPUS / "solved.mlirbc", "a=3,1,1,2", "b=1,1", *outputs)
    np.testing.assert_allclose(np.load(out[0]), np.linalg.solve(MATRIX, np.ones(2)), rtol=1e-5)
    np.testing.assert_allclose(np.load(out[1]), np.linalg.cholesky(MATRIX), rtol=1e-5)


# Errors -----------------------------------------------------------------------------------------

F = "tensor<3xf32>"
WRONG = {
    "no counterpart": (
        f"  %r = stablehlo.custom_call @my_kernel(%x) : ({F}) -> {F}",
        "stablehlo.custom_call calls 'my_kernel', a function of the program that wrote the "
        "module.\n  at model.mlir:2\n"
        "  Export the program without it, or for the CPU.",
    ),
    "an older call": (
        f"  %r = stablehlo.custom_call @lapack_spotrf(%x) : ({F}) -> {F}",
        "Calls of 'lapack_spotrf_ffi' can be raised: export the program again, with a JAX of "
        "today.",
    ),
    "Python": (
        f"  %r = stablehlo.custom_call @xla_ffi_python_cpu_callback(%x) : ({F}) -> {F}",
        "Callbacks call Python, which no module holds: export the program without them.",
    ),
    "numbers without a key": (
        "  %0 = stablehlo.constant dense<0.0> : tensor<f32>\n"
        "  %1 = stablehlo.constant dense<3> : tensor<1xi64>\n"
        f"  %r = stablehlo.rng %0, %0, %1, distribution = UNIFORM : (tensor<f32>, tensor<f32>, "
        f"tensor<1xi64>) -> {F}",
        "stablehlo.rng draws numbers without a key: the same program gives others each time.\n"
        "  at model.mlir:4",
    ),
    "several devices": (
        '  %r = "stablehlo.all_gather"(%x) {all_gather_dim = 0 : i64, replica_groups = '
        f"dense<[[0, 1]]> : tensor<1x2xi64>}} : ({F}) -> tensor<6xf32>",
        "stablehlo.all_gather communicates among the devices [0, 1].",
    ),
    "a comparator of its own": (
        f'  %r = "stablehlo.sort"(%x) ({{\n  ^bb0(%a: tensor<f32>, %b: tensor<f32>):\n'
        "    %0 = stablehlo.add %a, %b : tensor<f32>\n"
        "    %1 = stablehlo.compare LT, %0, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>\n"
        f"    stablehlo.return %1 : tensor<i1>\n  }}) {{dimension = 0 : i64}} : ({F}) -> {F}",
        "The comparator of this stablehlo.sort is no comparison of keys.\n  at model.mlir:2",
    ),
    "a communication": (
        "  %t = stablehlo.create_token : !stablehlo.token\n"
        f'  %r, %s = "stablehlo.infeed"(%t) : (!stablehlo.token) -> ({F}, !stablehlo.token)',
        "stablehlo.infeed exchanges arrays with the program that runs the module.\n"
        "  at model.mlir:3\n  Functions of axir take arguments and return results",
    ),
    "another dialect": (
        f"  %0 = stablehlo.negate %x : {F}\n  %r = math.absf %0 : {F}",
        "math.absf has no counterpart.\n  at model.mlir:3\n"
        "  Lower it to StableHLO with the program that wrote it.",
    ),
    "a missing option": (
        f"  %r = stablehlo.custom_call @lapack_strsm_ffi(%x, %x) : ({F}, {F}) -> {F}",
        "stablehlo.custom_call cannot be raised: KeyError:",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_cannot_be_raised_is_named(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    body, message = WRONG[name]
    monkeypatch.chdir(tmp_path)
    result = "tensor<6xf32>" if "tensor<6xf32>" in body else F
    text = f"func.func @main(%x: {F}) -> {result} {{\n{body}\n  return %r : {result}\n}}\n"
    Path("model.mlir").write_text(text)
    with pytest.raises(RaisingError) as caught:
        load("model.mlir")
    assert message in str(caught.value)


def test_open_shapes_have_names(tmp_path: Path) -> None:
    path = tmp_path / "dynamic.mlir"
    path.write_text(
        "func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> {\n"
        "  %0 = stablehlo.negate %x : tensor<?xf32>\n  return %0 : tensor<?xf32>\n}\n"
    )
    found = load(path)
    assert str(found.out_avals[0]) == "float32[arg0_0]"
    assert found.symbols == ("arg0_0",)


def test_the_place_is_that_of_the_text_and_of_the_program(tmp_path: Path) -> None:
    path = tmp_path / "model.mlir"
    path.write_text(
        f"func.func @main(%x: {F}) -> {F} {{\n"
        f'  %0 = stablehlo.custom_call @mine(%x) : ({F}) -> {F} loc(callsite("f"("net.py":7:1) at '
        f'"net.py":9:1))\n  return %0 : {F}\n}}\n'
    )
    with pytest.raises(RaisingError) as caught:
        load(path)
    assert f"at {path}:2, which comes from net.py:7" in str(caught.value)


def test_functions_that_call_themselves(tmp_path: Path) -> None:
    path = tmp_path / "endless.mlir"
    path.write_text(
        f"func.func @main(%x: {F}) -> {F} {{\n  %0 = call @f(%x) : ({F}) -> {F}\n"
        f"  return %0 : {F}\n}}\n"
        f"func.func private @f(%x: {F}) -> {F} {{\n  %0 = call @f(%x) : ({F}) -> {F}\n"
        f"  %1 = stablehlo.negate %0 : {F}\n  return %1 : {F}\n}}\n"
    )
    with pytest.raises(RaisingError, match="Function @f calls itself"):
        load(path)


def test_only_function_of_another_name(tmp_path: Path) -> None:
    path = tmp_path / "forward.mlir"
    path.write_text(
        f"func.func @forward(%x: {F}) -> {F} {{\n  %0 = stablehlo.negate %x : {F}\n"
        f"  return %0 : {F}\n}}\n"
    )
    found = load(path)
    np.testing.assert_array_equal(found(np.ones(3, np.float32)), -np.ones(3, np.float32))


@pytest.mark.parametrize("ragged", ["rows", "contracted"])
def test_ragged_products(ragged: str, tmp_path: Path) -> None:
    """Products of groups, as JAX writes them where its option asks for one operation."""
    generator = np.random.default_rng(1)
    sizes = np.array([3, 0, 6], np.int32)
    is_free = ragged == "rows"
    shapes = ((11, 5), (3, 5, 7)) if is_free else ((5, 11), (11, 7))
    lhs, rhs = (generator.standard_normal(shape).astype(np.float32) for shape in shapes)
    side = 1 if is_free else 0
    groups = ", rhs_group_dimensions = [0]" if is_free else ""
    kinds = [f"tensor<{'x'.join(map(str, shape))}xf32>" for shape in shapes]
    result = "tensor<11x7xf32>" if is_free else "tensor<3x5x7xf32>"
    text = f"""
    func.func @main(%l: {kinds[0]}, %r: {kinds[1]}, %g: tensor<3xi32>) -> {result} {{
      %0 = "chlo.ragged_dot"(%l, %r, %g) {{
        ragged_dot_dimension_numbers = #chlo.ragged_dot<
          lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [{side}],
          lhs_ragged_dimensions = [{0 if is_free else 1}]{groups}>,
        precision_config = [#chlo<precision DEFAULT>, #chlo<precision DEFAULT>]
      }} : ({kinds[0]}, {kinds[1]}, tensor<3xi32>) -> {result}
      return %0 : {result}
    }}"""
    numbers = jax.lax.RaggedDotDimensionNumbers(
        (((1,), (side,)), ((), ())), (0 if is_free else 1,), (0,) * is_free
    )
    expected = jax.lax.ragged_dot_general(lhs, rhs, sizes, numbers)
    path = tmp_path / "ragged.mlir"
    path.write_text(text)
    np.testing.assert_allclose(load(path)(lhs, rhs, sizes), expected, rtol=1e-5, atol=1e-6)
