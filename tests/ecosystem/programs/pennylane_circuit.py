"""PennyLane: a variational circuit of five qubits, minimized by its gradient, and its state."""

import jax
import jax.numpy as jnp
import pennylane as qml
from reporting import report

WIRES = 5
device = qml.device("default.qubit", wires=WIRES)


def layers(angles):
    for row in angles:
        for wire in range(WIRES):
            qml.RY(row[wire], wires=wire)
        for wire in range(WIRES - 1):
            qml.CNOT(wires=[wire, wire + 1])


@jax.jit
@jax.value_and_grad
@qml.qnode(device, interface="jax")
def energy(angles):
    layers(angles)
    return qml.expval(qml.PauliZ(0) @ qml.PauliZ(4) + 0.5 * qml.PauliX(2))


@jax.jit
@qml.qnode(device, interface="jax")
def probabilities(angles):
    layers(angles)
    return qml.probs(wires=[0, 2])


angles = jax.random.normal(jax.random.key(0), (2, WIRES))
energies = []
for _ in range(6):
    value, slopes = energy(angles)
    angles = angles - 0.3 * slopes
    energies.append(value)
report(
    energies=jnp.stack(energies),
    angles=angles,
    probabilities=probabilities(angles),
    timed=lambda: energy(angles),
)
