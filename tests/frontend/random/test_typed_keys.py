"""Typed random keys: one element of a separate dtype, in all operations that JAX supports."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import axir
import axir.numpy as jnp
from axir import dtypes, lax, random
from axir._programs.compiled_modules import open_program
from axir.dialect.core import errors
from axir.dialect.core.config import config
from axir.dialect.text.module_reader import parse_module, read_module
from axir.export import export, load
from axir.extend.random import define_prng_impl

GENERATORS = ("threefry2x32", "rbg", "unsafe_rbg")


@pytest.fixture(autouse=True)
def todays_stream() -> Iterator[None]:
    """Selects the stream that JAX draws by default."""
    before = jax.config.jax_threefry_partitionable
    jax.config.update("jax_threefry_partitionable", True)
    config.update("jax_threefry_partitionable", True)
    yield
    jax.config.update("jax_threefry_partitionable", before)


def words(keys: Any) -> np.ndarray:
    module = jax if isinstance(keys, jax.Array) else axir
    return np.asarray(module.random.key_data(keys))


def host(x: Any) -> np.ndarray:
    is_key = getattr(x.dtype, "name", "").startswith("key<")
    return words(x) if is_key else np.asarray(x)


def assert_same(actual: Any, expected: Any) -> None:
    """Compares trees of keys and arrays: dtypes, shapes, words; floats up to a few ulps."""
    ours, theirs = axir.tree.leaves(actual), jax.tree.leaves(expected)
    assert len(ours) == len(theirs)
    for x, y in zip(ours, theirs, strict=True):
        assert (x.shape, str(x.dtype)) == (y.shape, str(y.dtype))
        if host(x).dtype.kind == "f":
            np.testing.assert_allclose(host(x), host(y), rtol=1e-5, atol=1e-6)
        else:
            np.testing.assert_array_equal(host(x), host(y))


# Properties of keys
# ---------------------------------------------------------------------------------------


def test_key_is_a_scalar_of_its_own_dtype() -> None:
    key = random.key(0)
    assert (key.shape, key.ndim, key.size, key.itemsize, key.nbytes) == ((), 0, 1, 8, 8)
    assert repr(key) == str(key) == f"{key}" == "Array((), dtype=key<fry>) overlaying:\n[0 0]"
    assert repr(random.key(0)) == repr(jax.random.key(0))
    keys = random.split(key, (2, 3))
    assert repr(keys) == repr(jax.random.split(jax.random.key(0), (2, 3)))
    assert (keys.shape, len(keys), [x.shape for x in keys]) == ((2, 3), 2, [(3,), (3,)])
    assert (str(key.aval), str(axir.typeof(keys))) == ("key<fry>[]", "key<fry>[2,3]")
    assert isinstance(key, axir.Array)
    first, second = random.split(key)
    assert first.shape == second.shape == ()


def test_dtypes_of_keys_are_told_from_all_others() -> None:
    dtype = random.key(0).dtype
    assert dtype == random.key(5).dtype == random.key_dtype("threefry2x32")
    assert hash(dtype) == hash(random.key(5).dtype)
    assert dtype not in (random.key_dtype("rbg"), np.dtype("float32"), "key<fry>")
    assert str(dtype) == dtype.name == "key<fry>"
    for category in (dtypes.prng_key, dtypes.extended, np.generic, dtype):
        assert jnp.issubdtype(dtype, category)
        assert axir.dtypes.issubdtype(dtype, category)
    for other in (np.floating, np.integer, float, np.float32, "uint32"):
        assert not jnp.issubdtype(dtype, other)
    others = (float, np.float32, "int8", jnp.bfloat16, dtypes.float0, np.dtype("O"), "U3", None,
              np.datetime64, object, str, np.generic, jnp.inexact)  # fmt: skip
    assert not any(jnp.issubdtype(other, dtypes.prng_key) for other in others)
    assert jnp.issubdtype(dtypes.prng_key, dtypes.extended)
    assert jnp.result_type(dtype, random.key(1)) == dtype
    assert axir.dtypes.canonicalize_dtype(dtype, allow_extended_dtype=True) == dtype


def test_keys_are_copied_and_pickled() -> None:
    keys = random.split(random.key(3, impl="rbg"), 2)
    for twin in (copy.copy(keys), copy.deepcopy(keys), pickle.loads(pickle.dumps(keys))):
        assert twin.dtype is keys.dtype
        np.testing.assert_array_equal(words(twin), words(keys))
    assert pickle.loads(pickle.dumps(keys.dtype)) is keys.dtype
    assert axir.device_put(keys).dtype == axir.device_get(keys).dtype == keys.dtype


# Generators -------------------------------------------------------------------------------------


def draws(module: Any, key: Any) -> list[Any]:
    numbers = module.numpy.arange(3)
    split = module.random.split(key, 3)
    return [
        key,
        module.random.key_data(key),
        split,
        module.random.split(key, (2, 2)),
        module.random.fold_in(key, 3),
        module.random.clone(key),
        *(module.random.bits(key, (5,), f"uint{width}") for width in (8, 16, 32)),
        module.vmap(lambda k: module.random.bits(k, (2,)))(split),
        module.vmap(lambda k: module.random.split(k, 2))(split),
        module.vmap(lambda k: module.random.fold_in(k, 2))(split),
        module.vmap(lambda i: module.random.fold_in(key, i))(numbers),
        module.vmap(module.random.fold_in)(split, numbers),
    ]


@pytest.mark.parametrize("name", GENERATORS)
def test_words_and_bits_are_those_of_jax(name: str) -> None:
    ours, theirs = random.key(7, impl=name), jax.random.key(7, impl=name)
    expected = draws(jax, theirs)
    assert_same(draws(axir, ours), expected)
    assert_same(axir.jit(lambda key: draws(axir, key))(ours), expected)
    seeds = np.arange(-1, 3)
    assert_same(
        axir.vmap(lambda seed: random.key(seed, impl=name))(seeds),
        jax.vmap(lambda seed: jax.random.key(seed, impl=name))(seeds),
    )
    raw = random.PRNGKey(7, impl=name)
    np.testing.assert_array_equal(np.asarray(raw), words(ours))
    assert random.key_impl(ours) == name


def test_generator_is_named_in_many_ways() -> None:
    expected = random.key(5, impl="rbg")
    for way in ("rbg", random.key_impl(expected), expected.dtype, expected.dtype._impl):
        assert random.key(5, impl=way) == expected
        assert random.key(5, dtype=way) == expected
        assert random.wrap_key_data(words(expected), impl=way) == expected
    with axir.default_prng_impl("rbg"):
        assert random.key(5) == expected
        assert random.PRNGKey(5).shape == (4,)
        assert random.wrap_key_data(words(expected)) == expected
        assert random.bits(random.PRNGKey(5)) == random.bits(expected)
    with axir.enable_custom_prng():
        assert random.PRNGKey(5) == random.key(5)


def test_words_are_taken_unless_an_option_forbids_it() -> None:
    raw, typed = random.PRNGKey(1), random.key(1)
    np.testing.assert_array_equal(random.normal(raw, (3,)), random.normal(typed, (3,)))
    assert random.split(raw).dtype == random.fold_in(raw, 1).dtype == np.uint32
    with axir.legacy_prng_key("error"):
        random.normal(typed)
        random.wrap_key_data(raw)
        with pytest.raises(errors.ParameterError, match=r"random\.key\(seed\)"):
            random.normal(raw)
    with axir.legacy_prng_key("warn"), pytest.warns(UserWarning, match="jax_legacy_prng_key"):
        random.split(raw)


def test_saved_option_of_the_stream_stays_with_the_program() -> None:
    key = random.key(2)
    function = axir.make_jaxpr(lambda k: random.bits(k, (4,)))(key)
    expected = random.bits(key, (4,))
    with axir.threefry_partitionable(False):
        assert (random.bits(key, (4,)) != expected).any()
        (result,) = axir.core.eval_jaxpr(function.jaxpr, function.consts, key)
    np.testing.assert_array_equal(result, expected)


# Arrays of keys ---------------------------------------------------------------------------------


def moves(module: Any, keys: Any, key: Any) -> list[Any]:
    """Functions that move keys of shape (2, 3)."""
    np_, lax_ = module.numpy, module.lax
    indices, mask = np_.array([1, 0, 1]), np_.array([[True, False, True]] * 2)
    return [
        keys[0], keys[1, 2], keys[:, 1:3], keys[np_.array([1, 0])], keys[None, :, None],
        keys[..., -1],
        keys.at[0].set(key), keys.at[:, np_.array([0, 2])].set(keys[:, :1]), keys.at[1, 1].get(),
        keys.at[np_.array([5])].get(mode="fill"), np_.take(keys, indices, axis=1),
        keys.reshape(-1), keys.ravel(), keys.T, np_.transpose(keys), np_.swapaxes(keys, 0, 1),
        np_.moveaxis(keys, 0, 1), np_.expand_dims(keys, 1), np_.squeeze(keys[:1], 0),
        np_.broadcast_to(key, (2, 2)), np_.atleast_1d(key), np_.flip(keys), np_.roll(keys, 1),
        np_.tile(key, 2), np_.repeat(keys, 2, axis=0), np_.stack([key, key]), np_.array([key, key]),
        np_.concatenate([keys, keys[:1]]), np_.vstack([keys, keys]), np_.split(keys, 3, axis=1),
        np_.where(mask, keys, key), lax_.select(mask, keys, keys[::-1]),
        lax_.dynamic_slice(keys, (0, indices[0]), (2, 1)),
        lax_.dynamic_index_in_dim(keys, indices[0]),
        lax_.dynamic_update_slice(keys, keys[:1], (1, 0)), lax_.optimization_barrier(keys),
        lax_.stop_gradient(keys), np_.copy(keys), np_.full((2,), key), np_.full_like(keys, key),
        np_.zeros_like(key), np_.ones_like(keys), np_.zeros((2,), keys.dtype),
        keys == key, keys != keys[0, 1], key == key, np_.array_equal(keys, keys),
        lax_.eq(keys, keys[:1]), lax_.ne(keys[:, :1], keys[:1]),
    ]  # fmt: skip


def test_arrays_of_keys_are_moved_as_in_jax() -> None:
    def ours(key: Any) -> list[Any]:
        return moves(axir, random.split(key, (2, 3)), key)

    theirs = jax.random.key(0)
    expected = moves(jax, jax.random.split(theirs, (2, 3)), theirs)
    assert_same(ours(random.key(0)), expected)
    assert_same(axir.jit(ours)(random.key(0)), expected)


def test_moves_are_vectorized() -> None:
    keys = random.split(random.key(0), (4, 2, 3))
    batched = axir.vmap(lambda k: moves(axir, k, k[0, 0]))(keys)
    looped = [moves(axir, k, k[0, 0]) for k in keys]
    for results, *parts in zip(
        axir.tree.leaves(batched), *map(axir.tree.leaves, looped), strict=True
    ):
        np.testing.assert_array_equal(host(results), np.stack([host(x) for x in parts]))


def test_axes_of_vmap_and_collectives_take_keys() -> None:
    keys = random.split(random.key(0), (2, 3))
    assert axir.vmap(lambda k: k, in_axes=1, out_axes=1)(keys).shape == (2, 3)
    assert axir.vmap(lambda x: keys[0, 0])(jnp.ones(4)).shape == (4,)
    gathered = axir.vmap(lambda k: lax.all_gather(k, "i"), axis_name="i")(keys[0])
    np.testing.assert_array_equal(words(gathered), np.stack([words(keys[0])] * 3))
    ring = axir.vmap(lambda k: lax.ppermute(k, "i", [(0, 1), (1, 2), (2, 0)]), axis_name="i")
    np.testing.assert_array_equal(words(ring(keys[0])), np.roll(words(keys[0]), 1, 0))


# Transformations and control flow ---------------------------------------------------------------


def noisy(module: Any, key: Any, x: Any) -> Any:
    first, second = module.random.split(key)
    noise = module.random.normal(first, (3,)) * module.random.uniform(second, (3,))
    return module.numpy.sum(module.numpy.sin(x) * noise)


def loops(module: Any, key: Any) -> list[Any]:
    lax_, random_ = module.lax, module.random

    def step(carry: Any, k: Any) -> tuple[Any, tuple[Any, Any]]:
        return random_.fold_in(carry, 1), (random_.split(k)[0], random_.normal(k))

    keys = random_.split(key, 5)
    return [
        lax_.scan(step, key, keys),
        lax_.scan(step, key, keys, reverse=True, unroll=2),
        lax_.fori_loop(0, 3, lambda i, k: random_.fold_in(k, i), key),
        lax_.while_loop(lambda s: s[0] < 4, lambda s: (s[0] + 1, random_.split(s[1])[1]), (0, key)),
        lax_.cond(keys[0] == key, lambda k: k, lambda k: random_.clone(random_.split(k)[0]), key),
        lax_.switch(1, [lambda k: k, lambda k: keys[2], lambda k: keys[3]], key),
        lax_.map(lambda k: random_.bits(k), keys),
    ]


def test_loops_and_branches_carry_keys() -> None:
    expected = loops(jax, jax.random.key(4))
    assert_same(loops(axir, random.key(4)), expected)
    assert_same(axir.jit(lambda key: loops(axir, key))(random.key(4)), expected)


def test_batched_loops_carry_keys() -> None:
    keys, theirs = random.split(random.key(4), 2), jax.random.split(jax.random.key(4), 2)
    expected = jax.vmap(lambda key: loops(jax, key))(theirs)
    assert_same(axir.vmap(lambda key: loops(axir, key))(keys), expected)


def test_derivatives_pass_keys_by() -> None:
    key, x = random.key(1), jnp.arange(3.0)
    theirs, y = jax.random.key(1), jax.numpy.arange(3.0)
    zero = np.zeros((), dtypes.float0)
    ours = lambda k, x: noisy(axir, k, x)  # noqa: E731
    gradient = jax.grad(lambda x: noisy(jax, theirs, x))(y)
    for differentiated in (
        axir.grad(ours, argnums=1)(key, x),
        axir.grad(lambda x: ours(key, x))(x),
        axir.grad(axir.jit(ours), argnums=1)(key, x),
        axir.jit(axir.grad(ours, argnums=1))(key, x),
        axir.grad(axir.checkpoint(ours), argnums=1)(key, x),
        axir.vjp(ours, key, x)[1](1.0)[1],
        axir.jacfwd(ours, argnums=1)(key, x),
    ):
        assert_same(differentiated, gradient)
    assert axir.vjp(ours, key, x)[1](1.0)[0].dtype == dtypes.float0
    assert axir.grad(ours, argnums=(0, 1), allow_int=True)(key, x)[0].dtype == dtypes.float0
    tangent = gradient @ jax.numpy.ones(3)
    assert_same(axir.jvp(ours, (key, x), (zero, jnp.ones(3)))[1], tangent)
    assert_same(axir.linearize(ours, key, x)[1](zero, jnp.ones(3)), tangent)
    primals, tangents = axir.jvp(lambda k, x: (k, 2 * x), (key, x), (zero, x))
    assert (primals[0] == key, tangents[0].dtype) == (True, dtypes.float0)
    assert axir.grad(lambda x: (x[0], key), has_aux=True)(x)[1] == key


def test_gradients_of_loops_over_keys() -> None:
    def loss(module: Any, keys: Any, x: Any) -> Any:
        def step(c: Any, k: Any) -> Any:
            return module.numpy.sin(c) * module.random.normal(k, (3,)), None

        return module.numpy.sum(module.lax.scan(step, x, keys)[0])

    keys, theirs = random.split(random.key(2), 4), jax.random.split(jax.random.key(2), 4)
    expected = jax.grad(lambda x: loss(jax, theirs, x))(jax.numpy.ones(3))
    assert_same(axir.grad(lambda x: loss(axir, keys, x))(jnp.ones(3)), expected)
    compiled = axir.jit(axir.grad(lambda k, x: loss(axir, k, x), argnums=1))
    assert_same(compiled(keys, jnp.ones(3)), expected)


def test_custom_rules_take_keys() -> None:
    @axir.custom_vjp
    def scaled(key: Any, x: Any) -> Any:
        return random.normal(key) * x

    scaled.defvjp(lambda k, x: (scaled(k, x), k), lambda k, ct: (None, 2 * random.normal(k) * ct))

    @axir.custom_jvp
    def shifted(key: Any, x: Any) -> Any:
        return random.normal(key) + x

    @shifted.defjvp
    def _rule(primals: Any, tangents: Any) -> Any:
        return shifted(*primals), 3 * tangents[1]

    key = random.key(6)
    noise = random.normal(key)
    for wrapped in (lambda f: f, axir.jit):
        gradient = axir.grad(wrapped(scaled), argnums=1)(key, 2.0)
        np.testing.assert_allclose(gradient, 2 * noise, rtol=1e-6)
        assert axir.grad(wrapped(shifted), argnums=1)(key, 2.0) == 3.0


def test_programs_tell_types_of_keys() -> None:
    key = random.key(0)
    assert str(axir.make_jaxpr(lambda k: random.split(k)[1])(key)) == (
        "{ lambda ; a:key<fry>[]. let\n"
        "    b:key<fry>[2] = random_split[partitionable=True shape=(2,)] a\n"
        "    c:key<fry>[1] = slice[limit_indices=(2,) start_indices=(1,) strides=None] b\n"
        "    d:key<fry>[] = squeeze[dimensions=(0,)] c\n"
        "  in (d,) }"
    )
    raw = str(axir.make_jaxpr(lambda k: random.bits(k))(random.PRNGKey(0)))
    assert "b:key<fry>[] = random_wrap[impl=fry] a" in raw
    closed = axir.make_jaxpr(lambda x: (x, key))(1.0)
    assert "lambda a:key<fry>[] ;" in str(closed)
    seeded = str(axir.make_jaxpr(random.key)(3))
    assert "random_seed[impl=fry]" in seeded
    struct = axir.ShapeDtypeStruct((), key.dtype)
    shapes = axir.eval_shape(lambda k: (random.normal(k, (2,)), random.split(k, 3)), struct)
    assert [(x.shape, str(x.dtype)) for x in shapes] == [((2,), "float32"), ((3,), "key<fry>")]


def test_callbacks_get_the_words() -> None:
    key, seen = random.key(9), []

    def look(k: Any) -> np.ndarray:
        seen.append(np.asarray(k).tolist())
        return np.float32(1)

    like = axir.ShapeDtypeStruct((), np.float32)
    call = lambda k: axir.pure_callback(look, like, k)  # noqa: E731
    assert call(key) == axir.jit(call)(key) == 1
    assert seen == [[0, 9], [0, 9]]
    with pytest.raises(errors.DTypeError, match="callbacks return numbers"):
        axir.pure_callback(lambda: key, axir.ShapeDtypeStruct((), key.dtype))


# Use by libraries ---------------------------------------------------------------------------------


def test_usual_checks_of_libraries() -> None:
    key, raw = random.key(0), random.PRNGKey(0)

    def is_prng_key(x: Any) -> bool:
        try:
            if jnp.issubdtype(x.dtype, dtypes.prng_key):
                return x.shape == ()
            return x.shape == (2,) and x.dtype == np.uint32
        except AttributeError:
            return False

    assert is_prng_key(key)
    assert is_prng_key(raw)
    assert not any(map(is_prng_key, (random.split(key), 1, jnp.zeros(2))))
    counts = axir.tree.map(lambda x: x.size, {"rng": random.split(key, 3), "w": jnp.ones(2)})
    assert counts == {"rng": 3, "w": 2}

    @axir.jit
    def sample(key: Any) -> Any:
        def step(state: Any, key: Any) -> tuple[Any, Any]:
            state = state + random.normal(key)
            return state, state

        return lax.scan(step, 0.0, random.split(key, 4))[1]

    assert sample(key).shape == (4,)
    assert axir.vmap(sample)(random.split(key, 3)).shape == (3, 4)


# Errors -----------------------------------------------------------------------------------------

KEY = random.key(0)
KEYS = random.split(KEY, 3)
RAW = random.PRNGKey(0)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: np.asarray(KEY), errors.KeyConversionError, "random.key_data"),
        (lambda: int(KEY), errors.KeyConversionError, "has no numbers"),
        (lambda: bool(KEY), errors.KeyConversionError, "has no numbers"),
        (lambda: KEY.tolist(), errors.KeyConversionError, "has no numbers"),
        (lambda: hash(KEY), TypeError, "unhashable"),
        (lambda: KEY + KEY, errors.DTypeError, "add does not accept random keys"),
        (lambda: KEY + 1, errors.KeyPromotionError, "Random keys do not promote"),
        (lambda: KEY == RAW, errors.KeyPromotionError, "key<fry>, uint32"),
        (lambda: KEY == random.key(0, impl="rbg"), errors.KeyPromotionError, "key<rbg>"),
        (lambda: KEY < KEY, errors.DTypeError, "lt does not accept random keys"),
        (lambda: jnp.sin(KEY), errors.DTypeError, "sin does not accept random keys"),
        (lambda: jnp.sum(KEYS), errors.DTypeError, "does not accept random keys"),
        (lambda: jnp.sort(KEYS), errors.DTypeError, "does not accept random keys"),
        (lambda: jnp.nonzero(KEYS), errors.KeyConversionError, "has no numbers"),
        (lambda: jnp.logical_not(KEY), errors.KeyPromotionError, "is not a random key"),
        (lambda: jnp.concatenate([KEYS, RAW]), errors.KeyPromotionError, "do not promote"),
        (lambda: jnp.where(True, KEY, 0), errors.KeyPromotionError, "do not promote"),
        (lambda: jnp.array(KEY, float), errors.KeyPromotionError, "does not convert"),
        (lambda: RAW.astype(KEY.dtype), errors.KeyPromotionError, "does not convert"),
        (lambda: KEYS.at[0].set(RAW), errors.KeyPromotionError, "do not promote"),
        (lambda: jnp.result_type(KEY, 1), ValueError, "do not promote"),
        (lambda: jnp.promote_types(KEY.dtype, "float32"), TypeError, "do not promote"),
        (lambda: dtypes.canonicalize_dtype(KEY.dtype), errors.ParameterError, "allow_extended"),
        (lambda: dtypes.itemsize_bits(KEY.dtype), errors.ParameterError, "no dtype of numbers"),
        (lambda: dtypes.scalar_type_of(KEY), errors.DTypeError, "no dtype of numbers"),
        (lambda: random.normal(KEYS), errors.ParameterError,
         "random.normal accepts a single key, but was given a key array of shape (3,)"),
        (lambda: random.split(KEYS), errors.ParameterError, "axir.vmap"),
        (lambda: random.key(KEY), errors.DTypeError, "was given a random key"),
        (lambda: random.key(0, impl="rbg", dtype="rbg"), errors.ParameterError, "both impl and"),
        (lambda: random.key(0, impl="none"), errors.ParameterError, "'unsafe_rbg'"),
        (lambda: random.key(0, impl=3), errors.DTypeError, "names no generator"),
        (lambda: random.wrap_key_data(KEY), errors.DTypeError, "uint32 words"),
        (lambda: random.wrap_key_data(RAW, impl="rbg"), errors.ShapeError, "rbg have shape (4,)"),
        (lambda: axir.grad(lambda k: 1.0)(KEY), errors.GradientError, "key<fry>"),
        (lambda: axir.grad(lambda x: KEY)(1.0), errors.GradientError, "key<fry>"),
        (lambda: axir.jvp(lambda k: k, (KEY,), (KEY,)), errors.GradientError, "float0"),
        (lambda: lax.scan(lambda c, _: (random.key_data(c), None), KEY, length=2),
         errors.DTypeError, "key<fry>[] comes in, uint32[2] goes out"),
    ],
)  # fmt: skip
def test_mistakes_are_told(call: Callable[[], Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error) as caught:
        call()
    assert text in str(caught.value)


# Saved modules, generators of one's own ---------------------------------------------------------


def test_saved_modules_hold_keys(tmp_path: Path) -> None:
    keys, constant = random.split(random.key(1), 3), random.key(8, impl="rbg")

    def function(keys: Any, x: Any) -> Any:
        bits = axir.vmap(lambda k: random.bits(k, (2,)))(keys)
        return bits, keys[1], random.split(constant), x + random.normal(keys[0])

    expected = function(keys, 1.0)
    for suffix in (".mlir", ".mlirbc"):
        path = tmp_path / f"model{suffix}"
        export(function)(keys, 1.0).save(path)
        assert_same_ours(load(path).call(keys, 1.0), expected)
    assert_same_ours(axir.jit(load(path).call)(keys, 1.0), expected)
    program = open_program(path)
    assert [a.text for a in program.signature().arguments] == ['3x!jaxpr.key<"fry">', "f32"]
    assert_same_ours(program(keys, np.float32(1)), expected)
    with pytest.raises(errors.ShapeError, match="keys' must have shape"):
        program(random.key_data(keys), np.float32(1))


def assert_same_ours(actual: Any, expected: Any) -> None:
    for x, y in zip(actual, expected, strict=True):
        assert x.aval.strip_weak_type() == y.aval.strip_weak_type()
        np.testing.assert_allclose(host(x), host(y), rtol=1e-6)


TEXT = """
func.func @main() -> tensor<2x!jaxpr.key<"{tag}">> {{
  %0 = "jaxpr.constant"() {{value = dense<[[1, 2], [3, 4]]> : tensor<{words}>}}
    : () -> tensor<2x!jaxpr.key<"{tag}">>
  return %0 : tensor<2x!jaxpr.key<"{tag}">>
}}
"""


def test_text_of_keys_is_verified() -> None:
    module = parse_module(TEXT.format(words="2x2xui32", tag="fry"))
    (keys,) = read_module(module)["main"].evaluate()
    assert words(keys).tolist() == [[1, 2], [3, 4]]
    with pytest.raises(errors.VerificationError, match="the words of the keys, a .*uint32"):
        read_module(parse_module(TEXT.format(words="2x2xi32", tag="fry")))
    text = TEXT.format(words="2x2xui32", tag="none")
    with pytest.raises(errors.VerificationError, match="no random generator with tag 'none'"):
        read_module(parse_module(text))


def test_generator_of_ones_own_is_used_like_others() -> None:
    generator = define_prng_impl(
        key_shape=(3,),
        seed=lambda n: jnp.stack([n.astype("uint32")] * 3),
        split=lambda key, shape: (
            key + jnp.arange(int(np.prod(shape)) * 3, dtype="uint32").reshape((*shape, 3))
        ),
        random_bits=lambda key, width, shape: jnp.full(shape, key.sum()).astype(f"uint{width}"),
        fold_in=lambda key, data: key * data,
        name="sums",
        tag="sums",
    )
    key = random.key(2, impl=generator)
    assert (str(key.dtype), random.key_impl(key)) == ("key<sums>", "sums")
    assert random.key(2, impl="sums") == key
    draw = axir.vmap(lambda k: random.bits(random.fold_in(k, 3), (2,)))
    expected = [[27, 27], [54, 54]]
    assert draw(random.split(key)).tolist() == expected
    assert axir.jit(draw)(random.split(key)).tolist() == expected
    with pytest.raises(errors.ParameterError, match="'sums' with tag 'sums' cannot be registered"):
        define_prng_impl(**generator._asdict())
    with pytest.raises(errors.ParameterError, match="rank 1"):
        define_prng_impl(**{**generator._asdict(), "key_shape": (1, 2), "name": "x", "tag": "x"})


@pytest.mark.parametrize("is_partitionable", [False, True])
def test_programs_of_many_keys_do_not_carry_their_counters(is_partitionable: bool) -> None:
    def drawn(key):
        return axir.vmap(lambda k: random.bits(k, (20,)))(random.split(key, 5000))

    with axir.threefry_partitionable(is_partitionable):
        text = axir.jit(drawn).lower(random.key(0)).as_text()
        assert len(text) < 60_000
        np.testing.assert_array_equal(axir.jit(drawn)(random.key(3)), drawn(random.key(3)))
