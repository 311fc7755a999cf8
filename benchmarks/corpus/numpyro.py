"""Programs of numpyro: a sampler, and variational inference."""

from typing import Any

import jax
import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from numpyro.infer import MCMC, NUTS, SVI, Trace_ELBO
from numpyro.infer.autoguide import AutoNormal

from .registry import Case, Place, program

ROWS, COLUMNS = 2048, 64
DATA = {
    "x": jax.ShapeDtypeStruct((ROWS, COLUMNS), jnp.float32),
    "y": jax.ShapeDtypeStruct((ROWS,), jnp.int32),
}


def regression(x: Any, y: Any) -> None:
    """A logistic regression with a hidden layer."""
    w = numpyro.sample("w", dist.Normal(jnp.zeros((COLUMNS, 32)), 1.0))
    v = numpyro.sample("v", dist.Normal(jnp.zeros(32), 1.0))
    numpyro.sample("y", dist.Bernoulli(logits=jnp.tanh(x @ w) @ v), obs=y)


@program()
def numpyro_svi(place: Place) -> Case:
    """A step of variational inference."""
    svi = SVI(regression, AutoNormal(regression), numpyro.optim.Adam(1e-3), Trace_ELBO())
    # It remembers the model's structure, so the first state is made for real.
    data = {"x": jnp.zeros((ROWS, COLUMNS)), "y": jnp.zeros((ROWS,), jnp.int32)}
    state = svi.init(jax.random.key(0), **data)

    def update(state: Any, x: Any, y: Any) -> tuple[Any, Any]:
        return svi.update(state, x=x, y=y)

    return Case(update, {"state": state, **DATA}, {"x": "input", "y": "input"}, donated=("state",))


@program()
def numpyro_nuts(place: Place) -> Case:
    """A hundred samples of NUTS in four chains at once; the data are constants of the program."""
    kernel = NUTS(regression)

    def sample(keys: Any, x: Any, y: Any) -> Any:
        def chain(key: Any) -> Any:
            mcmc = MCMC(kernel, num_warmup=10, num_samples=20, progress_bar=False)
            mcmc.run(key, x=x, y=y)
            return mcmc.get_samples()["w"]

        return jax.vmap(chain)(keys)

    keys = jax.eval_shape(lambda: jax.random.split(jax.random.key(0), 4))
    return Case(sample, {"keys": keys, **DATA}, {"x": "input", "y": "input"})
