"""Writes `regression.axir`: a small network with its loss, which `axir grad` differentiates.

The parameters are arguments: the caller of the functions owns them.
"""

from __future__ import annotations

import sys

import axir.numpy as jnp
from axir.export import export

INPUTS, HIDDEN, BATCH = 8, 16, 32


def predict(params, x):
    """Returns a number for each row of 8."""
    hidden = jnp.tanh(x @ params["w1"] + params["b1"])
    return hidden @ params["w2"] + params["b2"]


def loss(params, x, y):
    """Returns the mean square of the differences."""
    return {"loss": jnp.mean((predict(params, x) - y) ** 2)}


def main() -> None:
    """Writes the bundle to the file that is named."""
    params = {
        "w1": jnp.zeros((INPUTS, HIDDEN)),
        "b1": jnp.zeros(HIDDEN),
        "w2": jnp.zeros(HIDDEN),
        "b2": jnp.zeros(()),
    }
    x, y = jnp.zeros((BATCH, INPUTS)), jnp.zeros(BATCH)
    export({"predict": predict, "loss": loss})(predict=(params, x), loss=(params, x, y)).save(
        sys.argv[1]
    )


if __name__ == "__main__":
    main()
