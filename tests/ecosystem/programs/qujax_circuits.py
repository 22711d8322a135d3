"""qujax: a parameterized circuit as a function, its expected values, and their minimization."""

import jax
import jax.numpy as jnp
import qujax
from reporting import report

QUBITS, LAYERS = 4, 2
gates, wires, parameters = [], [], []
for layer in range(LAYERS):
    for qubit in range(QUBITS):
        gates.append("Ry")
        wires.append([qubit])
        parameters.append([layer * QUBITS + qubit])
    for qubit in range(QUBITS - 1):
        gates.append("CX")
        wires.append([qubit, qubit + 1])
        parameters.append([])
state_of = qujax.get_params_to_statetensor_func(gates, wires, parameters)
expectation = qujax.get_statetensor_to_expectation_func(
    [["Z", "Z"], ["X"], ["Z"]], [[0, 1], [2], [3]], [1.0, 0.5, -0.7]
)
energy = jax.jit(jax.value_and_grad(lambda angles: expectation(state_of(angles))))
angles = jax.random.uniform(jax.random.key(0), (QUBITS * LAYERS,))
energies = []
for _ in range(10):
    value, slopes = energy(angles)
    angles = angles - 0.1 * slopes
    energies.append(value)
state = state_of(angles)
report(
    energies=jnp.stack(energies),
    angles=angles,
    probabilities=jnp.abs(state) ** 2,
    timed=lambda: energy(angles),
)
