"""Programs of brax: the update of PPO, and a rollout of an environment."""

from typing import Any

import jax
import jax.numpy as jnp
import optax
from brax import envs
from brax.training.agents.ppo import losses, networks

from .registry import Case, Place, program

STEPS, BATCH = 16, 64


@program()
def brax_rollout(place: Place) -> Case:
    """Steps of an environment in which every action is a random one."""
    env = envs.create("ant", backend="positional", episode_length=100)

    def rollout(state: Any, key: Any) -> tuple[Any, Any]:
        def step(state: Any, key: Any) -> tuple[Any, Any]:
            action = jax.random.uniform(key, (BATCH, env.action_size), minval=-1.0)
            state = jax.vmap(env.step)(state, action)
            return state, state.reward

        return jax.lax.scan(step, state, jax.random.split(key, STEPS))

    keys = jax.random.split(jax.random.key(0), BATCH)
    state = jax.eval_shape(jax.vmap(env.reset), keys)
    return Case(
        rollout,
        {"state": state, "key": jax.random.key(0)},
        {"state": "state", "key": "input"},
        donated=("state",),
    )


@program()
def brax_ppo(place: Place) -> Case:
    """PPO's update: a scan over minibatches of shuffled observations."""
    from brax.training.types import Transition

    nets = networks.make_ppo_networks(64, 8)
    optimizer = optax.adam(3e-4)

    def init(key: Any) -> Any:
        policy, value = nets.policy_network.init(key), nets.value_network.init(key)
        params = losses.PPONetworkParams(policy=policy, value=value)
        return params, optimizer.init(params)

    def update(params: Any, opt_state: Any, data: Any, key: Any) -> tuple[Any, ...]:
        def minibatch(carried: Any, batch: Any) -> tuple[Any, Any]:
            params, opt_state, key = carried
            key, own = jax.random.split(key)
            grad = jax.grad(losses.compute_ppo_loss, has_aux=True)
            grads, metrics = grad(params, None, batch, own, ppo_network=nets)
            updates, opt_state = optimizer.update(grads, opt_state)
            return (optax.apply_updates(params, updates), opt_state, key), metrics["total_loss"]

        key, order = jax.random.split(key)
        chosen = jax.random.permutation(order, BATCH)
        batches = jax.tree.map(lambda x: x[chosen].reshape(4, BATCH // 4, *x.shape[1:]), data)
        carried, told = jax.lax.scan(minibatch, (params, opt_state, key), batches)
        return *carried, told

    def shape(*sizes: int) -> Any:
        return jax.ShapeDtypeStruct((BATCH, STEPS, *sizes), jnp.float32)

    data = Transition(
        observation=shape(64),
        action=shape(8),
        reward=shape(),
        discount=shape(),
        next_observation=shape(64),
        extras={
            "policy_extras": {
                "log_prob": shape(),
                "raw_action": shape(8),
                "distribution_params": shape(16),
            },
            "state_extras": {"truncation": shape()},
        },
    )
    params, opt_state = jax.eval_shape(init, jax.random.key(0))
    return Case(
        update,
        {"params": params, "opt_state": opt_state, "data": data, "key": jax.random.key(0)},
        {"params": "weight", "opt_state": "optimizer state", "data": "input"},
        donated=("params", "opt_state"),
    )
