"""Names of the newest JAX that older ones lack: values against NumPy, SciPy and mpmath."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest
import scipy.special
import scipy.stats

import axir
import axir.numpy as jnp
from axir import lax, random
from axir.errors import ParameterError
from axir.experimental import EArray, layout, overlap, xla_metadata
from axir.random import _approximate
from axir.sharding import AxisType, PartitionSpec, UnreducedKind

KEY = random.key(7)


# Numbers -----------------------------------------------------------------------------------------


def test_minmax_is_both_extrema() -> None:
    x = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)
    low, high = axir.jit(lambda x: jnp.minmax(x, axis=0, keepdims=True))(x)
    np.testing.assert_array_equal(low, x.min(0, keepdims=True))
    np.testing.assert_array_equal(high, x.max(0, keepdims=True))
    mask = np.array([True, False])
    assert [int(v) for v in jnp.minmax(jnp.array([3, 9]), initial=(5, 0), where=mask)] == [3, 3]
    assert [int(v) for v in jnp.minmax(jnp.array([3, 9]), initial=4)] == [3, 9]


@pytest.mark.parametrize("dtype", ["float32", "int8", "uint8", "bool", "bfloat16"])
def test_top_k_is_the_beginning_of_a_sorted_line(dtype: str) -> None:
    x = jnp.asarray(np.random.default_rng(1).integers(0, 7, (3, 8)) - 3).astype(dtype)
    host = np.asarray(x).astype(np.float64)
    for axis in (0, -1):
        for mode, sign in (("largest", -1.0), ("smallest", 1.0)):
            order = np.argsort(sign * host, axis=axis, kind="stable").take(range(2), axis)
            values, places = jnp.top_k(x, 2, axis=axis, mode=mode)
            assert values.dtype == x.dtype
            np.testing.assert_array_equal(places, order)
            np.testing.assert_array_equal(
                np.asarray(values).astype(np.float64), np.take_along_axis(host, order, axis)
            )


def test_top_k_orders_zeros_and_nan() -> None:
    x = jnp.array([0.0, jnp.nan, -0.0, 1.0])
    _, places = axir.jit(lambda x: jnp.top_k(x, 4, mode="smallest"))(x)
    assert places.tolist() == [2, 0, 3, 1]
    assert jnp.top_k(x, 4)[1].tolist() == [1, 3, 0, 2]
    for mode, order in (("smallest", [2, 0, 1]), ("largest", [0, 1, 2])):
        places = axir.jit(
            lambda x, mode=mode: jnp.top_k(jnp.stack([jnp.nan, x - x, 1.0]), 3, mode=mode)[1]
        )(jnp.inf)  # the difference is a NaN with its sign bit set
        assert places.tolist() == order
    with pytest.raises(ParameterError, match=r"(?s)mode is 'best'.*'largest' or 'smallest'"):
        jnp.top_k(x, 1, mode="best")
    with pytest.raises(ParameterError, match="k=5 must lie between 0 and the size of axis 0"):
        jnp.top_k(x, 5, mode="smallest")


def test_lexsort_of_many_keys_sorts_in_batches() -> None:
    keys = np.random.default_rng(2).integers(0, 2, (9, 3, 20))
    expected = np.lexsort(list(keys), axis=-1)
    for size in (1, 2, 4, 16):
        found = jnp.lexsort([jnp.asarray(key) for key in keys], batch_size=size)
        np.testing.assert_array_equal(found, expected)
    with pytest.raises(ParameterError, match="batch_size is 0"):
        jnp.lexsort([jnp.arange(2)], batch_size=0)


def test_logarithm_to_the_base_of_two() -> None:
    x = np.array([0.5, 1.0, 3.0, 8.0, 0.0, np.inf], np.float32)
    with np.errstate(divide="ignore"):
        expected = np.log2(x)
    np.testing.assert_allclose(axir.jit(lax.log2)(x), expected, rtol=3e-7)
    assert float(axir.grad(lax.log2)(2.0)) == pytest.approx(1 / (2 * math.log(2)))
    with pytest.raises(axir.errors.DTypeError, match=r"(?s)does not accept.*int32.*astype"):
        lax.log2(jnp.arange(2))
    with pytest.raises(ParameterError, match="not an accuracy of log2"):
        lax.log2(1.0, accuracy=lax.Tolerance(rtol=1e-3))


def test_one_minus_square_is_exact_near_one() -> None:
    x = np.float32(1 - 2**-20)
    exact = float(1 - mpmath.mpf(float(x)) ** 2)
    assert float(axir.jit(lax.one_minus_square)(x)) == pytest.approx(exact, rel=2e-7)
    assert float(axir.grad(lax.one_minus_square)(1e-30)) == pytest.approx(-2e-30)


@pytest.mark.parametrize("count", [1, 2, 5, 8, 9, 14])
@pytest.mark.parametrize("unroll", [None, 3])
def test_polynomials_and_their_derivatives(count: int, unroll: int | None) -> None:
    generator = np.random.default_rng(count)
    terms = generator.normal(size=count).astype(np.float32)
    x = generator.uniform(-1, 1, size=5).astype(np.float32)

    def value(x: Any, terms: Any) -> Any:
        return lax.polynomial(x, list(terms), unroll=unroll)

    @axir.jit
    def both(x: Any, terms: Any) -> Any:
        slope = axir.vmap(axir.grad(value), (0, None))(x, terms)
        by_terms = axir.vmap(axir.grad(value, argnums=1), (0, None))(x, terms)
        return value(x, terms), slope, by_terms

    found, slope, by_terms = both(x, terms)
    exact = np.polynomial.Polynomial(terms.astype(np.float64))
    np.testing.assert_allclose(found, exact(x), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(slope, exact.deriv()(x), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(by_terms, x[:, None] ** np.arange(count), rtol=1e-5, atol=1e-6)


def test_polynomials_of_arrays_and_none() -> None:
    found = lax.polynomial(jnp.ones((2, 1)), [jnp.arange(3.0).reshape(1, 3), 2.0])
    np.testing.assert_array_equal(found, [[2, 3, 4]] * 2)
    np.testing.assert_array_equal(lax.polynomial(jnp.ones(2), []), [0, 0])


def test_inverse_of_the_complementary_error_function() -> None:
    y = np.array([1e-35, 1e-8, 0.3, 1.0, 1.0001, 1.9, 0.0, 2.0, 3.0], np.float32)
    expected = scipy.special.erfcinv(y.astype(np.float64))
    inverse = axir.scipy.special.erfcinv
    np.testing.assert_allclose(axir.jit(inverse)(y), expected, rtol=4e-6, atol=1e-9)
    np.testing.assert_allclose(inverse(y), expected, rtol=4e-6, atol=1e-9)
    for dtype, rounding in ((np.float32, 4e-6), (np.float64, 1e-14)):
        smallest = np.finfo(dtype).smallest_normal * np.array([1, 1.5, 2, 3], dtype)
        expected = scipy.special.erfcinv(smallest.astype(np.float64))
        with axir.enable_x64(True):
            for found in (inverse(smallest), axir.jit(inverse)(smallest)):  # halves are denormal
                np.testing.assert_allclose(found, expected, rtol=rounding)
    assert float(inverse(0.3)) == pytest.approx(float(mpmath.erfinv(mpmath.mpf("0.7"))), rel=1e-6)
    slope = -math.sqrt(math.pi) / 2 * math.exp(scipy.special.erfcinv(0.3) ** 2)
    assert float(axir.grad(inverse)(0.3)) == pytest.approx(slope, rel=1e-5)


def test_products_in_another_dtype() -> None:
    x = jnp.full(3, 300, jnp.int16)
    assert lax.mul(x, x, out_dtype=jnp.int32).tolist() == [90000] * 3
    assert lax.mul(x, 2, out_dtype="float32").dtype == jnp.float32
    found = axir.grad(lambda x: lax.mul(x, x, out_dtype=jnp.float32).sum())(jnp.ones(2, "bfloat16"))
    assert (found.dtype, found.tolist()) == (jnp.bfloat16, [2.0, 2.0])


# Random numbers ----------------------------------------------------------------------------------


def _agrees(drawn: Any, distribution: Callable[..., Any], parameters: tuple[float, ...]) -> None:
    assert scipy.stats.kstest(np.asarray(drawn), distribution(*parameters).cdf).pvalue > 1e-3


@pytest.mark.parametrize("a", [0.2, 1.0, 7.5, 200.0])
def test_approximate_gamma_numbers(a: float) -> None:
    drawn = random.gamma(KEY, a, (20000,), method="approximate")
    _agrees(drawn, scipy.stats.gamma, (a,))
    logarithms = random.loggamma(KEY, a, (20000,), method="approximate")
    np.testing.assert_allclose(np.exp(logarithms), drawn, rtol=1e-5)
    tangent = axir.jvp(lambda a: random.gamma(KEY, a, (20000,), method="approximate"), (a,), (1.0,))
    assert float(tangent[1].mean()) == pytest.approx(1.0, rel=0.05)  # the mean is a


def test_approximate_numbers_made_of_gamma_numbers() -> None:
    drawn = random.beta(KEY, 0.5, 2.0, (20000,), method="approximate")
    _agrees(drawn, scipy.stats.beta, (0.5, 2.0))
    drawn = random.chisquare(KEY, 3.0, (20000,), method="approximate")
    _agrees(drawn, scipy.stats.chi2, (3.0,))
    half = random.gamma(KEY, 2.0, (5,), "float16", method="approximate")
    assert half.dtype == jnp.float16


@pytest.mark.parametrize("rate", [0.3, 6.9, 7.1, 40.0, 1e4])
def test_approximate_poisson_numbers(rate: float) -> None:
    drawn = np.asarray(random.poisson(KEY, rate, (50000,), method="approximate"))
    counts = np.arange(drawn.min(), drawn.max() + 1)
    found = np.searchsorted(np.sort(drawn), counts, side="right") / drawn.size
    assert np.abs(found - scipy.stats.poisson(rate).cdf(counts)).max() < 0.01


@pytest.mark.parametrize("rate", [0.3, 6.9, 7.0, 7.1, 40.0, 1e4])
def test_total_variation_of_approximate_poisson_numbers(
    rate: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each count begins where the normal number behind it passes a bound, which is searched for."""
    exact = scipy.stats.poisson(rate)
    counts = np.arange(max(exact.ppf(1e-12) - 1, 0), exact.isf(1e-12) + 2)
    rates = jnp.full(counts.shape, rate)

    def drawn(normal: Any) -> Any:
        monkeypatch.setattr(_approximate, "draw_normal", lambda *_: normal)
        return random.poisson(KEY, rates, method="approximate")

    draw = axir.jit(drawn)
    low, high = np.full(counts.shape, -9.0), np.full(counts.shape, 9.0)
    for _ in range(32):
        middle = (low + high) / 2
        is_below = np.asarray(draw(middle.astype(np.float32))) <= counts
        low, high = np.where(is_below, middle, low), np.where(is_below, high, middle)
    probabilities = np.diff(scipy.stats.norm.cdf(low), prepend=0.0)
    assert np.abs(probabilities - exact.pmf(counts)).sum() / 2 < 1e-4


def test_methods_of_drawing_are_two() -> None:
    for draw in (random.gamma, random.loggamma, random.chisquare, random.poisson):
        with pytest.raises(
            ParameterError, match=r"(?s)method is 'quick'.*'exact' or 'approximate'"
        ):
            draw(KEY, 1.0, method="quick")
    with pytest.raises(ParameterError, match=r"random\.beta: method is 'quick'"):
        random.beta(KEY, 1.0, 1.0, method="quick")
    assert random.poisson(KEY, jnp.nan, method="approximate") == -1


# Placement, collectives and compiler options ---------------------------------------------------


def test_meshes_in_use() -> None:
    mesh = axir.make_mesh(axis_shapes=(1,), axis_names=("x",))
    assert mesh == axir.make_mesh(axis_sizes=(1,), axis_names=("x",))
    with axir.set_mesh(mesh):
        assert axir.get_mesh() == mesh
        assert axir.get_abstract_mesh() == mesh.abstract_mesh
    abstract = axir.sharding.AbstractMesh((2, 3), ("x", "y"))
    with axir.use_abstract_mesh(abstract):
        assert axir.get_abstract_mesh().axis_sizes == (2, 3)
    renamed = abstract.update_axis_types({"y": AxisType.Explicit})
    assert renamed.axis_types == (AxisType.Auto, AxisType.Explicit)
    assert mesh.update(axis_names=("z",)).axis_names == ("z",)


def test_results_lie_where_out_sharding_says() -> None:
    spec = PartitionSpec()
    with axir.set_mesh(axir.make_mesh((1,), ("x",))):
        x = jnp.arange(6.0)
        made = [
            x.reshape(2, 3, out_sharding=spec), x.flatten(out_sharding=spec),
            jnp.reshape(x, (3, 2), out_sharding=spec), jnp.ravel(x, out_sharding=spec),
            jnp.repeat(x, 2, out_sharding=spec), jnp.broadcast_to(x, (2, 6), out_sharding=spec),
            jnp.histogram(x, 3, out_sharding=spec)[0],
            axir.nn.one_hot(jnp.arange(2), 3, out_sharding=spec),
            lax.reduce_max(x, (0,), out_sharding=spec), lax.reduce_min(x, (0,), out_sharding=spec),
        ]  # fmt: skip
    assert [v.sharding.mesh.axis_names for v in made] == [("x",)] * len(made)
    with pytest.raises(axir.errors.AxirError, match="reshape requires a non-empty mesh"):
        jnp.reshape(jnp.ones(2), (2,), out_sharding=spec)


def test_sums_are_the_only_open_reductions() -> None:
    assert PartitionSpec(unreduced={"x"}).unreduced_kind is UnreducedKind.sum
    assert PartitionSpec("x").unreduced_kind is None
    with pytest.raises(ParameterError, match=r"(?s)unreduced_kind.*only sums.*lax\.pmax"):
        PartitionSpec(unreduced={"x"}, unreduced_kind=UnreducedKind.max)


def test_collectives_in_two_steps() -> None:
    def begun(x: Any) -> Any:
        future = lax.psum_scatter_start({"a": x}, "i")["a"]
        assert (future.shape, future.dtype) == ((), jnp.int32)
        return future.done()

    assert axir.vmap(begun, axis_name="i")(jnp.array([[1, 2], [3, 4]])).tolist() == [4, 6]


def test_all_gather_says_how_its_result_varies() -> None:
    mesh = axir.sharding.AbstractMesh((2,), ("i",))
    spec = PartitionSpec("i")
    x = jnp.arange(4.0)

    def gathered(x: Any) -> Any:
        return lax.all_gather(x, "i", tiled=True, to="invarying")

    whole = axir.shard_map(gathered, mesh=mesh, in_specs=spec, out_specs=PartitionSpec())
    assert whole(x).tolist() == x.tolist()
    weights = jnp.array([1.0, 2.0, 3.0, 4.0])
    assert axir.grad(lambda x: (whole(x) * weights).sum())(x).tolist() == weights.tolist()
    for exact in (-0.0, -1.5, math.nan):
        for dtype in ("float32", "bfloat16", "complex64", "int8", "uint32", "bool"):
            given = np.array([exact] * 4 if dtype[0] in "fbc" else [0, 1, 2, 3]).astype(dtype)
            found = np.asarray(axir.jit(whole)(jnp.asarray(given)))
            assert found.tobytes() == given.tobytes()
    second = axir.grad(lambda x: axir.grad(lambda x: (whole(x) ** 3 * weights).sum())(x).sum())(x)
    np.testing.assert_allclose(second, 6 * x * weights)
    with pytest.raises(ParameterError, match=r"(?s)vary in the way 'no'.*'varying', 'invarying'"):
        axir.vmap(lambda x: lax.all_gather(x, "i", to="no"), axis_name="i")(x)


def test_what_xla_is_told_changes_nothing() -> None:
    inlined = axir.jit(lambda x: x + 1, inline=axir.Inline.JAX_EARLY)
    kept = axir.jit(lambda x: x + 1, inline=axir.Inline.AUTO)
    jaxpr = axir.make_jaxpr(lambda x: kept(inlined(x)))(1.0)
    assert [e.primitive.name for e in jaxpr.eqns] == ["add", "jit"]
    assert axir.CompilerEffortLevel.O1.name == "O1"
    wrapped = [
        xla_metadata.must_fuse_call("1")(abs), xla_metadata.fuse_limit()(abs),
        xla_metadata.xla_metadata_call(abs, note=1), xla_metadata.xla_metadata_call2()(abs),
        overlap.program_order(enforce=True)(abs), overlap.program_order(abs, enforce=False),
        layout.explicit_layout(in_layouts=(layout.Layout((0,)),))(lambda x: abs(x)),
    ]  # fmt: skip
    assert [f(jnp.array([-1])).tolist() for f in wrapped] == [[1]] * len(wrapped)
    with pytest.raises(ParameterError, match="for arrays of 1 axes"):
        wrapped[-1](jnp.ones((1, 1)))


def test_no_array_is_an_earray() -> None:
    assert not isinstance(random.key(0), EArray)
    with pytest.raises(axir.errors.DTypeError, match="no type of arrays here"):
        EArray("type", jnp.ones(1))


def test_refs_take_pins_and_keywords() -> None:
    ref = axir.new_ref(jnp.zeros(2), pin=True)
    ref.addupdate(x=1.0, idx=0)
    assert ref[...].tolist() == [1.0, 0.0]
    assert axir.empty_ref(axir.ShapeDtypeStruct((2,), "int32"), pin=True).shape == (2,)


def test_views_have_one_class() -> None:
    with pytest.raises(ParameterError, match=r"(?s)arrays have one class.*Leave"):
        jnp.ones(1).view("int32", type=np.matrix)


def test_a_function_is_compiled_for_the_device_it_was_lowered_for() -> None:
    lowered = axir.jit(lambda x: x + 1).lower(1.0)
    assert float(lowered.compile(device_assignment=axir.devices()[:1])(1.0)) == 2.0
    with pytest.raises(ParameterError, match="was lowered for"):
        lowered.compile(device_assignment=())


def test_breakpoints_wait_for_a_token(capsys: pytest.CaptureFixture[str]) -> None:
    import io  # late: beside its use

    output = io.StringIO()

    def f(x: Any) -> Any:
        return axir.debug.breakpoint(token=2 * x, stdin=io.StringIO("p x\nc\n"), stdout=output)

    assert float(axir.jit(f)(4.0)) == 8.0
    assert "Array(4., dtype=float32" in output.getvalue()


@pytest.mark.parametrize(
    "given",
    [
        {"mtls_cert_file": "a.pem"}, {"mtls_key_file": "a.key"}, {"mtls_ca_file": "ca.pem"},
        {"mtls_peer_uri_prefix": "spiffe://a"}, {"verify_secure_credentials": True},
    ],
)  # fmt: skip
def test_certificates_are_refused(given: dict[str, Any]) -> None:
    with pytest.raises(ParameterError, match=r"(?s)certificates.*do not encrypt.*Leave them out"):
        axir.distributed.initialize(**given)


def test_bounds_of_symbolic_dimensions() -> None:
    bounds = axir.export.symbolic_dim_bounds
    n, twice, less, part = axir.export.symbolic_shape("n, 2*n + 1, 3 - n, mod(n, 4)")
    assert [bounds(d) for d in (5, n, twice, less, part)] == [
        (5.0, 5.0), (1.0, math.inf), (3.0, math.inf), (-math.inf, 2.0), (0.0, 3.0),
    ]  # fmt: skip
    operations = (n // 2, -(n // 2), less // 2, n * part, n % n, n // -2, (n % 3) % 5, n // 2 - n)
    assert [bounds(d) for d in operations] == [
        (0.0, math.inf), (-math.inf, 0.0), (-math.inf, 1.0), (0.0, math.inf),
        (0.0, 0.0), (-math.inf, math.inf), (0.0, 2.0), (-math.inf, -1.0),
    ]  # fmt: skip
    assert bounds(axir.export.symbolic_shape("max(n, 4)")[0]) == (4.0, math.inf)
    assert bounds(axir.export.symbolic_shape("min(n, 4)")[0]) == (1.0, 4.0)


def test_comparisons_of_symbolic_dimensions_that_hold_for_all_sizes() -> None:
    n, m = axir.export.symbolic_shape("n, m")
    assert [n >= 1, n > 0, n + m >= 2, bool(n), 2 * n > n, 0 < n, 1 <= m] == [True] * 7
    assert [n < 1, n + 1 <= 1] == [False] * 2
    assert [n % 2 >= 0, n // 2 >= 0, n % 2 < 2, bool(-n), bool(-n - m)] == [True] * 5
    assert not bool(n % 1)
    for compare in (
        lambda: n > 3,
        lambda: n < m,
        lambda: bool(n - m),
        lambda: bool(n % 2),
        lambda: bool(n // 2),
        lambda: int(n),
    ):
        with pytest.raises(
            axir.errors.InconclusiveDimensionOperation, match="the size of|is not known"
        ):
            compare()


# Profiles ----------------------------------------------------------------------------------------


def test_sessions_keep_what_they_record(tmp_path: Path) -> None:
    profiler = axir.profiler
    session = profiler.ProfileSession(tmp_path / "own")
    with session:
        assert session.is_running
        with profiler.TraceAnnotation("a step"):
            pass
    (line,) = session.profile_data.find_plane_with_name("Python and axir").lines
    assert isinstance(line, profiler.ProfileLine)
    assert [event.name for event in line.events] == ["a step"]
    session.export_profile_data(tmp_path / "other", session_id="first")
    profiler.export_profile_data(session.profile_data, tmp_path / "third")
    files = sorted(tmp_path.rglob("*.trace.json.gz"))
    assert len(files) == 3
    assert len({file.read_bytes() for file in files}) == 1
    assert "first" in {file.parent.name for file in files}
    with pytest.raises(axir.errors.ProfileError, match="No profile started"):
        session.stop()
    with pytest.raises(axir.errors.ProfileError, match="holds no trace"):
        profiler.export_profile_data(profiler.ProfileSession(), tmp_path)
    made = profiler.ProfileData({"traceEvents": []})
    with pytest.raises(axir.errors.ProfileError, match=r"(?s)made of a dictionary.*from_file"):
        profiler.export_profile_data(made, tmp_path / "made")
    assert not (tmp_path / "made").exists()


# Functions from outside --------------------------------------------------------------------------


def test_registered_functions_are_called_by_name() -> None:
    ffi = axir.ffi
    ffi.register_ffi_target("test_scaled", lambda x, *, factor: x * np.float32(factor))
    call = ffi.ffi_call(
        "test_scaled", axir.ShapeDtypeStruct((), jnp.float32), vmap_method="sequential"
    )
    found = axir.jit(axir.vmap(lambda x: call(x, factor=2.0)))(jnp.arange(3.0))
    assert found.tolist() == [0.0, 2.0, 4.0]
    seen: list[float] = []
    ffi.register_ffi_target("test_seen", lambda x: seen.append(float(x)) or x)
    effect = ffi.ffi_call("test_seen", axir.ShapeDtypeStruct((), jnp.float32), has_side_effect=True)
    axir.jit(lambda x: (effect(x), 1)[1])(3.0)
    axir.effects_barrier()
    assert seen == [3.0]
    effect = ffi.ffi_call(
        "test_seen", axir.ShapeDtypeStruct((), jnp.float32), has_side_effect=True,
        vmap_method="broadcast_all",
    )  # fmt: skip
    assert axir.jit(axir.vmap(effect))(jnp.array([5.0, 4.0])).tolist() == [5.0, 4.0]
    assert sorted(seen) == [3.0, 4.0, 5.0]


def test_targets_of_other_platforms_stand_beside_each_other() -> None:
    import ctypes  # late: beside its use

    ffi = axir.ffi
    handler = ffi.pycapsule(ctypes.CDLL(None).abs)
    call = ffi.ffi_call("test_platforms", axir.ShapeDtypeStruct((), jnp.float32))
    ffi.register_ffi_target("test_platforms", lambda x: x + np.float32(1))
    ffi.register_ffi_target("test_platforms", handler, platform="CUDA")
    assert call(1.0) == 2.0
    ffi.register_ffi_target("test_platforms", lambda x: x + np.float32(2), platform="CUDA")
    assert call(1.0) == 2.0
    ffi.register_ffi_target("test_platforms", handler, platform="cpu")
    assert call(1.0) == 3.0


def test_handlers_of_xla_are_not_called() -> None:
    import ctypes  # late: beside its use

    ffi = axir.ffi
    ffi.register_ffi_target("test_handler", ffi.pycapsule(ctypes.CDLL(None).abs))
    with pytest.raises(
        ffi.XlaHandlerError, match=r"(?s)'test_handler' is a handler of XLA.*ctypes"
    ):
        ffi.ffi_call("test_handler", axir.ShapeDtypeStruct((), jnp.float32))(1.0)
    with pytest.raises(ParameterError, match=r"(?s)no target.*'none'.*register_ffi_target"):
        ffi.ffi_call("none", axir.ShapeDtypeStruct((), jnp.float32))(1.0)
    with pytest.raises(ffi.XlaHandlerError, match=r"(?s)no headers"):
        ffi.include_dir()
    with pytest.raises(ffi.XlaHandlerError, match=r"(?s)'any' cannot be written.*lower_fun"):
        ffi.build_ffi_lowering_function("any")(None)
