"""Parts of larger networks: attention with a cache, embeddings, graphs, decoding, flows."""

from __future__ import annotations

import itertools

import numpy as np
from scipy.special import log_softmax, logsumexp, softmax
from support.program_cases import Program, normal, numerical_gradient, over

import axir as jax
import axir.numpy as jnp
from axir import lax

# --- a transformer's layer: tokens one by one with a cache give what all at once give

LAYER = {
    "qkv": normal(4, 12, scale=0.5),
    "out": normal(4, 4, scale=0.5),
    "up": normal(4, 8, scale=0.5),
    "down": normal(8, 4, scale=0.5),
    "scale": normal(4) ** 2,
}
TOKENS = normal(5, 4, seed=1)


def rms_norm(x, scale):
    return x * lax.rsqrt(jnp.mean(x**2, axis=-1, keepdims=True) + 1e-6) * scale


def feed_forward(params, x):
    return x + jax.nn.gelu(rms_norm(x, params["scale"]) @ params["up"]) @ params["down"]


def decode_with_cache(params, tokens):
    length = tokens.shape[0]

    def step(cache, inputs):
        position, x = inputs
        qkv = (rms_norm(x, params["scale"]) @ params["qkv"]).reshape(3, 2, 2)
        cache = jax.tree.map(
            lambda c, new: lax.dynamic_update_index_in_dim(c, new, position, 0),
            cache,
            {"k": qkv[1], "v": qkv[2]},
        )
        scores = jnp.einsum("hd,shd->hs", qkv[0], cache["k"]) / jnp.sqrt(2.0)
        scores = jnp.where(jnp.arange(length) <= position, scores, -jnp.inf)
        mixed = jnp.einsum("hs,shd->hd", jax.nn.softmax(scores), cache["v"])
        return cache, feed_forward(params, x + mixed.reshape(4) @ params["out"])

    cache = {name: jnp.zeros((length, 2, 2)) for name in "kv"}
    return lax.scan(step, cache, (jnp.arange(length), tokens))[1]


def transformer(params, tokens):
    q, k, v = jnp.split(rms_norm(tokens, params["scale"]) @ params["qkv"], 3, axis=-1)
    q, k, v = (x.reshape(-1, 2, 2) for x in (q, k, v))
    mixed = jax.nn.dot_product_attention(q, k, v, is_causal=True).reshape(-1, 4)
    return feed_forward(params, tokens + mixed @ params["out"])


def transformer_numpy(params, tokens):
    def norm(x):
        return x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-6) * params["scale"]

    q, k, v = (norm(tokens) @ params["qkv"]).reshape(5, 3, 2, 2).transpose(1, 2, 0, 3)
    scores = q @ k.transpose(0, 2, 1) / np.sqrt(2)
    scores[:, ~np.tri(5, dtype=bool)] = -np.inf
    x = tokens + (softmax(scores, -1) @ v).transpose(1, 0, 2).reshape(5, 4) @ params["out"]
    up = norm(x) @ params["up"]
    gelu = 0.5 * up * (1 + np.tanh(np.sqrt(2 / np.pi) * (up + 0.044715 * up**3)))
    return x + gelu @ params["down"]


# --- embeddings: the gradient of a look-up adds up what repeated words receive

WORDS = np.array([[1, 3, 1], [0, 3, 5]])


def embedding_gradient(table, words, targets):
    def loss(table):
        return jnp.sum((table[words].mean(axis=1) - targets) ** 2)

    return jax.value_and_grad(loss)(table)


def embedding_gradient_numpy(table, words, targets):
    residual = table[words].mean(axis=1) - targets
    slopes = np.zeros_like(table)
    np.add.at(slopes, words, 2 * residual[:, None, :] / 3)
    return (residual**2).sum(), slopes


def skip_gram_step(table, centre, context, negatives):
    """One step of negative sampling; only the rows in use change."""

    def loss(vectors):
        inside = jax.nn.log_sigmoid(vectors[centre] @ vectors[context])
        outside = jax.nn.log_sigmoid(-vectors[negatives] @ vectors[centre])
        return -inside - outside.sum()

    return table - 0.5 * jax.grad(loss)(table)


def skip_gram_step_numpy(table, centre, context, negatives):
    def loss(vectors):
        margins = [vectors[centre] @ vectors[context], *(-vectors[negatives] @ vectors[centre])]
        return sum(np.log1p(np.exp(-m)) for m in margins)

    return table - 0.5 * numerical_gradient(loss, table)


# --- a graph network: messages along edges, summed at their receivers

SENDERS, RECEIVERS = np.array([0, 1, 2, 2, 3, 0]), np.array([1, 2, 0, 3, 0, 3])


def graph_network(weights, nodes, edges, senders, receivers):
    for w in weights:
        messages = jnp.tanh(jnp.concatenate([nodes[senders], edges], axis=1) @ w)
        scores = jax.ops.segment_max(messages.sum(1), receivers, num_segments=4)
        chances = jnp.exp(messages.sum(1) - scores[receivers])
        totals = jax.ops.segment_sum(chances, receivers, num_segments=4)
        chances = chances / totals[receivers]
        nodes = nodes + jnp.zeros_like(nodes).at[receivers].add(chances[:, None] * messages)
    return nodes, jax.ops.segment_sum(nodes, jnp.array([0, 0, 1, 1]), num_segments=2)


def graph_network_numpy(weights, nodes, edges, senders, receivers):
    for w in weights:
        messages = np.tanh(np.concatenate([nodes[senders], edges], axis=1) @ w)
        nodes = nodes.copy()
        for node in range(4):
            mine = receivers == node
            nodes[node] += softmax(messages[mine].sum(1)) @ messages[mine]
    return nodes, nodes.reshape(2, 2, -1).sum(1)


# --- beam search over a table of transitions


def beam_search(start, transitions):
    size = transitions.shape[-1]
    scores, first = lax.top_k(jax.nn.log_softmax(start), 2)

    def step(carry, table):
        scores, last = carry
        extended = scores[:, None] + jax.nn.log_softmax(table[last])
        scores, flat = lax.top_k(extended.ravel(), 2)
        parent, word = flat // size, flat % size
        return (scores, word), (parent, word)

    (scores, _), (parents, words) = lax.scan(step, (scores, first), transitions)

    def back(beam, entry):
        parent, word = entry
        return parent[beam], word[beam]

    trace = jax.vmap(lambda beam: lax.scan(back, beam, (parents, words), reverse=True))
    beam, tail = trace(jnp.arange(2))
    return scores, jnp.concatenate([first[beam][:, None], tail], axis=1)


def beam_search_numpy(start, transitions):
    scores = log_softmax(start)
    beams = sorted(((scores[w], (w,)) for w in range(len(start))), reverse=True)[:2]
    for table in transitions:
        table = log_softmax(table, axis=-1)
        longer = [(s + table[p[-1], w], (*p, w)) for s, p in beams for w in range(len(start))]
        beams = sorted(longer, reverse=True)[:2]
    return np.array([s for s, _ in beams]), np.array([p for _, p in beams])


# --- the loss of connectionist temporal classification: the sum over all alignments


def alignment_loss(logits, labels):
    """Labels have length 2 and differ; class 0 is the blank."""
    log_probs = jax.nn.log_softmax(logits)
    extended = jnp.zeros(5, int).at[1::2].set(labels)
    can_skip = jnp.arange(5) == 3

    def step(alpha, scores):
        one = jnp.concatenate([jnp.array([-1e30]), alpha[:-1]])
        two = jnp.where(can_skip, jnp.concatenate([jnp.full(2, -1e30), alpha[:-2]]), -1e30)
        return jnp.logaddexp(jnp.logaddexp(alpha, one), two) + scores[extended], None

    start = jnp.where(jnp.arange(5) < 2, log_probs[0][extended], -1e30)
    alpha, _ = lax.scan(step, start, log_probs[1:])
    return -jnp.logaddexp(alpha[-1], alpha[-2])


def alignment_loss_numpy(logits, labels):
    scores = log_softmax(logits, axis=-1)
    total = []
    for path in itertools.product(range(logits.shape[1]), repeat=len(logits)):
        collapsed = [k for k, _ in itertools.groupby(path) if k != 0]
        if collapsed == list(labels):
            total.append(sum(scores[t, k] for t, k in enumerate(path)))
    return -logsumexp(total)


# --- normalizing flows: their log determinants are those of the whole Jacobian


def coupling_flow(params, x):
    """RealNVP: halves scale and shift each other. Returns the image, log |det| and the inverse."""

    def shift_and_scale(layer, half):
        s, t = jnp.split(jnp.tanh(half @ params[layer][0]) @ params[layer][1], 2)
        return jnp.tanh(s), t

    a, b = jnp.split(x, 2)
    s, t = shift_and_scale(0, a)
    y = b * jnp.exp(s) + t
    u, v = shift_and_scale(1, y)
    z = a * jnp.exp(u) + v
    s, t = shift_and_scale(0, (z - v) * jnp.exp(-u))
    inverse = jnp.concatenate([(z - v) * jnp.exp(-u), (y - t) * jnp.exp(-s)])
    return jnp.concatenate([z, y]), s.sum() + u.sum(), inverse


def coupling_flow_numpy(params, x):
    def forward(x):
        s, t = np.split(np.tanh(x[:2] @ params[0][0]) @ params[0][1], 2)
        y = x[2:] * np.exp(np.tanh(s)) + t
        u, v = np.split(np.tanh(y @ params[1][0]) @ params[1][1], 2)
        return np.concatenate([x[:2] * np.exp(np.tanh(u)) + v, y])

    steps = 1e-6 * np.eye(4)
    jacobian = [(forward(x + e) - forward(x - e)) / 2e-6 for e in steps]
    return forward(x), np.linalg.slogdet(np.array(jacobian))[1], x


def planar_flow(layers, points):
    def flow(x):
        log_det = 0.0
        for u, w, b in layers:
            u = u + (jax.nn.softplus(w @ u) - 1 - w @ u) * w / (w @ w)
            inner = w @ x + b
            log_det = log_det + jnp.log(jnp.abs(1 + (1 - jnp.tanh(inner) ** 2) * (w @ u)))
            x = x + u * jnp.tanh(inner)
        return x, log_det

    images, log_dets = jax.vmap(flow)(points)
    jacobians = jax.vmap(jax.jacfwd(lambda x: flow(x)[0]))(points)
    return images, log_dets, jnp.linalg.slogdet(jacobians)[1]


def planar_flow_numpy(layers, points):
    determinant = np.ones(len(points))
    for u, w, b in layers:
        u = u + (np.log1p(np.exp(w @ u)) - 1 - w @ u) * w / (w @ w)
        tanh = np.tanh(points @ w + b)
        matrices = np.eye(2) + (1 - tanh**2)[:, None, None] * np.outer(u, w)
        determinant *= np.linalg.det(matrices)
        points = points + tanh[:, None] * u
    return points, np.log(abs(determinant)), np.log(abs(determinant))


COUPLING = [(normal(2, 3, seed=s), normal(3, 4, seed=s, scale=0.5)) for s in (1, 2)]
PLANAR = [(normal(2, seed=s), normal(2, seed=s + 5), normal(seed=s)) for s in (1, 2, 3)]

PROGRAMS = [
    Program(decode_with_cache, (LAYER, TOKENS), transformer_numpy),
    Program(transformer, (LAYER, TOKENS), transformer_numpy, gradient=(0, 1)),
    Program(embedding_gradient, (normal(6, 3), WORDS, normal(2, 3)), embedding_gradient_numpy),
    Program(skip_gram_step, (normal(7, 3), 2, 5, np.array([0, 5, 6, 6])), skip_gram_step_numpy),
    Program(
        graph_network,
        ([normal(5, 3), normal(5, 3, seed=1)], normal(4, 3), normal(6, 2), SENDERS, RECEIVERS),
        graph_network_numpy,
        gradient=(0, 1),
    ),
    Program(beam_search, (normal(4), normal(3, 4, 4)), beam_search_numpy),
    Program(alignment_loss, (normal(4, 3), np.array([2, 1])), alignment_loss_numpy),
    Program(coupling_flow, (COUPLING, normal(4)), coupling_flow_numpy),
    Program(planar_flow, (PLANAR, normal(3, 2)), planar_flow_numpy),
]


@over(PROGRAMS)
def test_networks(program: Program) -> None:
    program.check()
