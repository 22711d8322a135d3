"""Programs that differentiate a function in many ways, in axir and in JAX."""

from __future__ import annotations

import numpy as np

X = np.linspace(0.2, 1.4, 4, dtype=np.float32)

# From the library and an elementwise function to a function of `X`.
COMPOSITIONS = {
    "call": lambda lib, f: f,
    "jit": lambda lib, f: lib.jit(f),
    "vmap grad": lambda lib, f: lib.vmap(lib.grad(f)),
    "grad vmap": lambda lib, f: lib.grad(lambda x: lib.vmap(f)(x).sum()),
    "jit vmap grad": lambda lib, f: lib.jit(lib.vmap(lib.grad(f))),
    "grad jit": lambda lib, f: lib.grad(lambda x: lib.jit(f)(x).sum()),
    "jacfwd": lambda lib, f: lib.jacfwd(f),
    "jacrev": lambda lib, f: lib.jacrev(f),
    "hessian": lambda lib, f: lib.hessian(lambda x: f(x).sum()),
    "hessian of jit": lambda lib, f: lib.hessian(lambda x: lib.jit(f)(x).sum()),
    "second": lambda lib, f: lib.vmap(lib.grad(lib.grad(f))),
    "jvp": lambda lib, f: lambda x: lib.jvp(f, (x,), (x,)),
    "jvp jit": lambda lib, f: lambda x: lib.jvp(lib.jit(f), (x,), (x,)),
    "linearize": lambda lib, f: lambda x: lib.linearize(f, x)[1](x),
    "vjp": lambda lib, f: lambda x: lib.vjp(f, x)[1](x)[0],
    "scan": lambda lib, f: lib.grad(
        lambda x: lib.lax.scan(lambda c, _: (f(c), c), x, None, length=3)[0].sum()
    ),
    "jit scan": lambda lib, f: lib.jit(
        lib.grad(lambda x: lib.lax.scan(lambda c, _: (f(c), c), x, None, length=3)[0].sum())
    ),
    "cond": lambda lib, f: lib.grad(lambda x: lib.lax.cond(x[0] > 0, f, lambda y: y, x).sum()),
    "mapped scan": lambda lib, f: lib.vmap(
        lib.grad(lambda x: lib.lax.scan(lambda c, _: (f(c), c), x, None, length=2)[0])
    ),
}
