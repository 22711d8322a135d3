"""NetKet: the ground state of a chain of spins by variational Monte Carlo, and exactly."""

import jax
import jax.numpy as jnp
import netket as nk
import numpy as np
from reporting import report

SPINS = 8
hilbert = nk.hilbert.Spin(s=1 / 2, N=SPINS)
graph = nk.graph.Chain(length=SPINS, pbc=True)
hamiltonian = nk.operator.IsingJax(hilbert=hilbert, graph=graph, h=1.0)
machine = nk.models.RBM(alpha=1, param_dtype=float)
state = nk.vqs.FullSumState(hilbert, machine, seed=0)
driver = nk.driver.VMC(
    hamiltonian,
    nk.optimizer.Sgd(learning_rate=0.05),
    variational_state=state,
    preconditioner=nk.optimizer.SR(diag_shift=0.01),
)
energies = []
for _ in range(12):
    driver.run(1, show_progress=False)
    energies.append(state.expect(hamiltonian).mean.real)
sampled = nk.vqs.MCState(
    nk.sampler.MetropolisLocal(hilbert, n_chains=8), machine, n_samples=128, seed=1, sampler_seed=2
)
exact = nk.exact.lanczos_ed(hamiltonian, k=1)[0]
report(
    energies=np.array(energies),
    exact=exact,
    sampled_is_above=sampled.expect(hamiltonian).mean.real > exact - 0.5,
    amplitudes=jnp.abs(state.to_array())[:16],
    timed=lambda: jax.tree.leaves(state.expect_and_grad(hamiltonian)[1]),
)
