"""diffrax: adaptive solutions of differential equations, gradients through them, noise."""

import diffrax
import jax
import jax.numpy as jnp
from reporting import report


def predator_prey(t, y, args):
    a, b, c, d = args
    return jnp.array([a * y[0] - b * y[0] * y[1], d * y[0] * y[1] - c * y[1]])


args = (1.1, 0.4, 0.4, 0.1)
start = jnp.array([10.0, 5.0])


@jax.jit
def solved(start, args):
    return diffrax.diffeqsolve(
        diffrax.ODETerm(predator_prey),
        diffrax.Tsit5(),
        t0=0.0,
        t1=5.0,
        dt0=0.1,
        y0=start,
        args=args,
        saveat=diffrax.SaveAt(ts=jnp.linspace(0, 5, 6)),
        stepsize_controller=diffrax.PIDController(rtol=1e-5, atol=1e-6),
    ).ys


def final(a, adjoint):
    return diffrax.diffeqsolve(
        diffrax.ODETerm(lambda t, y, a: -a * y),
        diffrax.Dopri5(),
        t0=0.0,
        t1=1.0,
        dt0=0.05,
        y0=jnp.array(1.0),
        args=a,
        adjoint=adjoint,
        stepsize_controller=diffrax.PIDController(rtol=1e-4, atol=1e-6),
    ).ys[0]


@jax.jit
def noisy(key):
    motion = diffrax.VirtualBrownianTree(0.0, 1.0, tol=1e-2, shape=(), key=key)
    terms = diffrax.MultiTerm(
        diffrax.ODETerm(lambda t, y, args: -y),
        diffrax.ControlTerm(lambda t, y, args: 0.1, motion),
    )
    return diffrax.diffeqsolve(
        terms, diffrax.EulerHeun(), t0=0.0, t1=1.0, dt0=0.05, y0=jnp.array(1.0)
    ).ys[0]


stiff = diffrax.diffeqsolve(
    diffrax.ODETerm(lambda t, y, args: -50.0 * (y - jnp.cos(t))),
    diffrax.Kvaerno3(),
    t0=0.0,
    t1=1.0,
    dt0=0.01,
    y0=jnp.array(0.0),
    stepsize_controller=diffrax.PIDController(rtol=1e-3, atol=1e-5),
).ys[0]
report(
    solved=solved(start, args),
    reverse=jax.grad(final)(2.0, diffrax.RecursiveCheckpointAdjoint()),
    backward=jax.grad(final)(2.0, diffrax.BacksolveAdjoint()),
    forward=jax.jvp(lambda a: final(a, diffrax.ForwardMode()), (2.0,), (1.0,))[1],
    noisy=noisy(jax.random.key(0)),
    stiff=stiff,
    timed=lambda: solved(start, args),
)
