"""Prints a program's results, for comparison, and the time of its typical step."""

import json
import os
import resource
import sys
import time

import numpy as np

CALLS = int(os.environ.get("ECOSYSTEM_CALLS", "0"))  # of the step; 0 without a measurement
SECONDS = 4  # the most for all calls, so slow steps are called less often


def report(timed=None, **results):
    """Prints results as one line of JSON, with the name of the module that implements `jax`.

    `timed` is the library's typical step, as a function of no arguments.
    """
    import jax

    values = {name: np.asarray(value, np.float64).tolist() for name, value in results.items()}
    values["implementation"] = jax.numpy.__name__
    sys.stdout.write("\nRESULTS " + json.dumps(values) + "\n")
    if CALLS and timed is not None:
        sys.stdout.write("TIMES " + json.dumps(measured(timed)) + "\n")


def measured(timed):
    """Returns seconds of the fastest call, by the clock and by processors, and memory in MB."""
    import jax

    def call():
        jax.block_until_ready(timed())

    call()
    if jax.numpy.__name__ == "axir.numpy":
        jax.extend.backend.wait_for_compilers()
    call()
    clock, processors = [], []
    until = time.perf_counter() + SECONDS
    while len(clock) < CALLS and (not clock or time.perf_counter() < until):
        before = time.perf_counter(), time.process_time()
        call()
        clock.append(time.perf_counter() - before[0])
        processors.append(time.process_time() - before[1])
    return {
        "step": min(clock),
        "step_processors": min(processors),
        "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }
