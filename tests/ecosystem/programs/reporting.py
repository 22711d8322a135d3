"""Prints what a program computed, for those who compare it."""

import json
import sys

import numpy as np


def report(**results):
    """Prints results as one line of JSON, and makes sure whose `jax` computed them."""
    import jax

    values = {name: np.asarray(value, np.float64).tolist() for name, value in results.items()}
    values["implementation"] = jax.numpy.__name__
    sys.stdout.write("\nRESULTS " + json.dumps(values) + "\n")
