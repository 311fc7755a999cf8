"""Programs of jax-md: molecular dynamics, and training of a potential."""

from typing import Any

import jax
import jax.numpy as jnp
from jax_md import energy, simulate, space

from .registry import Case, Place, program

PARTICLES = 512
POSITIONS = jax.ShapeDtypeStruct((PARTICLES, 3), jnp.float32)


@program()
def jax_md_nve(place: Place) -> Case:
    """Hundred steps at constant energy: the gradient is a force, and nothing is trained."""
    displacement, shift = space.periodic(8.0)
    start, move = simulate.nve(energy.soft_sphere_pair(displacement), shift, 1e-3)

    def simulated(state: Any) -> Any:
        return jax.lax.fori_loop(0, 100, lambda _, state: move(state), state)

    state = jax.eval_shape(lambda key, r: start(key, r, kT=1.0), jax.random.key(0), POSITIONS)
    return Case(simulated, {"state": state}, {"state": "state"}, donated=("state",))


@program()
def jax_md_neighbors(place: Place) -> Case:
    """Langevin dynamics of a Lennard-Jones fluid with lists of neighbours."""
    displacement, shift = space.periodic(10.0)
    neighbors, energy_of = energy.lennard_jones_neighbor_list(displacement, 10.0)
    start, move = simulate.nvt_langevin(energy_of, shift, 1e-3, kT=1.0)
    grid = jnp.stack(jnp.meshgrid(*[jnp.arange(8.0)] * 3), -1).reshape(-1, 3) * 1.2
    found = neighbors.allocate(grid)

    def simulated(state: Any, found: Any) -> tuple[Any, Any]:
        def step(_: int, carried: tuple[Any, Any]) -> tuple[Any, Any]:
            state, found = carried
            found = found.update(state.position)
            return move(state, neighbor=found), found

        return jax.lax.fori_loop(0, 50, step, (state, found))

    state = jax.eval_shape(
        lambda key, r: start(key, r, neighbor=found), jax.random.key(0), POSITIONS
    )
    return Case(
        simulated, {"state": state, "found": found}, {"state": "state"}, donated=("state", "found")
    )
