"""Programs of diffrax: a neural differential equation, and a stochastic one."""

from typing import Any

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp

from .equinox import step
from .registry import Case, Place, program


@program()
def diffrax_neural_ode(place: Place) -> Case:
    """A training step of a network that is a derivative, with an adaptive solver."""
    model = eqx.filter_eval_shape(
        lambda key: eqx.nn.MLP(32, 32, 256, 2, jax.nn.softplus, key=key), jax.random.key(0)
    )
    times = jnp.linspace(0.0, 1.0, 16)

    def loss(model: Any, paths: Any) -> Any:
        def solved(start: Any) -> Any:
            return diffrax.diffeqsolve(
                diffrax.ODETerm(lambda t, y, args: model(y)),
                diffrax.Tsit5(),
                t0=0.0,
                t1=1.0,
                dt0=0.1,
                y0=start,
                saveat=diffrax.SaveAt(ts=times),
                stepsize_controller=diffrax.PIDController(rtol=1e-3, atol=1e-6),
                max_steps=256,
            ).ys

        return jnp.mean((jax.vmap(solved)(paths[:, 0]) - paths) ** 2)

    return step(model, loss, jax.ShapeDtypeStruct((64, 16, 32), jnp.float32), names=("paths",))
