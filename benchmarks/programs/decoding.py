"""Sequences that are written one token at a time, with a cache of keys and values."""

from __future__ import annotations

from benchmarks.harness.program import floats, integers, weights
from benchmarks.programs.groups import loops


def _params(vocabulary, width):
    names = ("query", "key", "value", "out")
    params = {name: weights(width, width) for name in names}
    return {**params, "embed": floats(vocabulary, width), "up": weights(width, 4 * width)}


def _attend(jax, params, x, keys, values, position):
    """One token attends to the cache, which gets its key and value; all of a single head."""
    jnp = jax.numpy
    keys = jax.lax.dynamic_update_index_in_dim(keys, x @ params["key"], position, 0)
    values = jax.lax.dynamic_update_index_in_dim(values, x @ params["value"], position, 0)
    scores = keys @ (x @ params["query"]) / x.shape[-1] ** 0.5
    seen = jnp.arange(keys.shape[0]) <= position
    shares = jax.nn.softmax(jnp.where(seen, scores, -1e9))
    x = x + (shares @ values) @ params["out"]
    x = x + jax.nn.gelu(x @ params["up"]) @ params["up"].T
    return x / jnp.sqrt(jnp.mean(x**2) + 1e-6), keys, values


@loops.program((128, 1000, 64), tiny=(3, 5, 4), cold=True)
def greedy_decoding(jax, length, vocabulary, width):
    jnp = jax.numpy

    def run(params, first):
        def step(state, position):
            token, keys, values = state
            x = params["embed"][token]
            x, keys, values = _attend(jax, params, x, keys, values, position)
            token = jnp.argmax(params["embed"] @ x).astype(jnp.int32)
            return (token, keys, values), token

        empty = jnp.zeros((length, width))
        return jax.lax.scan(step, (first, empty, empty), jnp.arange(length))[1]

    return run, [_params(vocabulary, width), integers(vocabulary)]


@loops.program((32, 4, 500, 32), tiny=(3, 2, 5, 4), tolerance=1e-3)
def beam_search(jax, length, beams, vocabulary, width):
    """Beams that are cut to the best after each token; their caches move with them."""
    jnp = jax.numpy

    def run(params, first):
        def step(state, position):
            tokens, scores, keys, values = state
            attend = jax.vmap(lambda x, k, v: _attend(jax, params, x, k, v, position))
            x, keys, values = attend(params["embed"][tokens], keys, values)
            total = scores[:, None] + jax.nn.log_softmax(x @ params["embed"].T)
            scores, flat = jax.lax.top_k(total.reshape(-1), beams)
            beam, tokens = flat // vocabulary, flat % vocabulary
            return (tokens, scores, keys[beam], values[beam]), (beam, tokens)

        empty = jnp.zeros((beams, length, width))
        start = jnp.where(jnp.arange(beams) == 0, 0.0, -1e9)
        state = (jnp.full(beams, first), start, empty, empty)
        (_, scores, _, _), path = jax.lax.scan(step, state, jnp.arange(length))
        return scores, path

    return run, [_params(vocabulary, width), integers(vocabulary)]


@loops.program((64, 16, 300, 32), tiny=(3, 2, 5, 4))
def sampled_decoding(jax, length, batch, vocabulary, width):
    """Tokens are drawn for a batch until each sequence has ended or is full."""
    jnp = jax.numpy

    def run(params, first):
        def one(token, number):
            def step(state):
                position, token, keys, values, text = state
                x = params["embed"][token]
                x, keys, values = _attend(jax, params, x, keys, values, position)
                key = jax.random.fold_in(jax.random.key(number), position)
                token = jax.random.categorical(key, params["embed"] @ x / 4).astype(jnp.int32)
                return position + 1, token, keys, values, text.at[position].set(token)

            def goes_on(state):
                return (state[0] < length) & (state[1] != 0)

            empty = jnp.zeros((length, width))
            state = (0, token, empty, empty, jnp.zeros(length, jnp.int32))
            return jax.lax.while_loop(goes_on, step, state)[4]

        return jax.vmap(one)(first, jnp.arange(batch))

    return run, [_params(vocabulary, width), integers(vocabulary - 1, batch) + 1]
