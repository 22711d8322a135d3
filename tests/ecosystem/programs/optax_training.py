"""optax: a network trained by AdamW on a schedule, and L-BFGS with a line search."""

import jax
import jax.numpy as jnp
import optax
from reporting import report


def predict(params, x):
    for w, b in params[:-1]:
        x = jnp.tanh(x @ w + b)
    w, b = params[-1]
    return x @ w + b


def initial(key, sizes=(2, 16, 16, 1)):
    keys = jax.random.split(key, len(sizes) - 1)
    return [
        (jax.random.normal(k, (m, n)) / jnp.sqrt(m), jnp.zeros(n))
        for k, m, n in zip(keys, sizes, sizes[1:], strict=False)
    ]


def trained():
    x = jax.random.uniform(jax.random.key(1), (64, 2), minval=-1)
    y = jnp.sin(3 * x[:, :1]) * x[:, 1:]
    schedule = optax.warmup_cosine_decay_schedule(0.0, 1e-2, 10, 60)
    optimizer = optax.chain(
        optax.clip_by_global_norm(1.0), optax.adamw(schedule, weight_decay=1e-4)
    )
    params = initial(jax.random.key(0))
    state = optimizer.init(params)

    @jax.jit
    def step(params, state):
        loss, grads = jax.value_and_grad(
            lambda p: jnp.mean(optax.losses.squared_error(predict(p, x), y))
        )(params)
        updates, state = optimizer.update(grads, state, params)
        return optax.apply_updates(params, updates), state, loss

    losses = []
    for _ in range(60):
        params, state, loss = step(params, state)
        losses.append(loss)
    return jnp.stack(losses)[::10], optax.tree.norm(params), lambda: step(params, state)


def minimized():
    def rosenbrock(x):
        return jnp.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)

    optimizer = optax.lbfgs()
    value_and_grad = optax.value_and_grad_from_state(rosenbrock)

    @jax.jit
    def run(x):
        def body(_, carry):
            x, state = carry
            value, grad = value_and_grad(x, state=state)
            updates, state = optimizer.update(
                grad, state, x, value=value, grad=grad, value_fn=rosenbrock
            )
            return optax.apply_updates(x, updates), state

        return jax.lax.fori_loop(0, 40, body, (x, optimizer.init(x)))[0]

    return run(jnp.zeros(4))


losses, norm, step = trained()
report(losses=losses, norm=norm, minimum=minimized(), timed=step)
