"""Programs of MuJoCo's MJX: a rollout, and the gradient of a controller through one."""

from typing import Any

import jax
import jax.numpy as jnp
import mujoco
from mujoco import mjx

from .registry import Case, Place, program

WALKER = """
<mujoco>
  <option timestep="0.005" iterations="1" ls_iterations="4"/>
  <worldbody>
    <geom type="plane" size="5 5 0.1"/>
    <body pos="0 0 1">
      <freejoint/>
      <geom type="capsule" size="0.1 0.3"/>
      {legs}
    </body>
  </worldbody>
  <actuator>{motors}</actuator>
</mujoco>
"""
LEG = """
<body pos="{x} {y} -0.2">
  <joint name="hip{i}" axis="0 1 0" range="-60 60" limited="true"/>
  <geom type="capsule" fromto="0 0 0 {x} {y} -0.2" size="0.05"/>
  <body pos="{x} {y} -0.2">
    <joint name="knee{i}" axis="1 0 0" range="-60 60" limited="true"/>
    <geom type="capsule" fromto="0 0 0 0 0 -0.4" size="0.05"/>
  </body>
</body>
"""


def walker() -> tuple[Any, Any]:
    """A body with four legs, and its state at rest."""
    ways = [(0.2, 0.2), (0.2, -0.2), (-0.2, 0.2), (-0.2, -0.2)]
    legs = "".join(LEG.format(x=x, y=y, i=i) for i, (x, y) in enumerate(ways))
    motors = "".join(f'<motor joint="{name}{i}"/>' for i in range(4) for name in ("hip", "knee"))
    model = mujoco.MjModel.from_xml_string(WALKER.format(legs=legs, motors=motors))
    return mjx.put_model(model), mjx.make_data(model)


@program()
def mjx_rollout(place: Place) -> Case:
    """Sixteen steps of 64 bodies at once."""
    model, data = walker()

    def rollout(positions: Any, velocities: Any, controls: Any) -> Any:
        def step(state: Any, control: Any) -> tuple[Any, Any]:
            state = jax.vmap(lambda d, u: mjx.step(model, d.replace(ctrl=u)))(state, control)
            return state, state.qpos

        start = jax.vmap(lambda q, v: data.replace(qpos=q, qvel=v))(positions, velocities)
        return jax.lax.scan(step, start, controls)[1]

    shape = jax.ShapeDtypeStruct
    return Case(
        rollout,
        {
            "positions": shape((64, model.nq), jnp.float32),
            "velocities": shape((64, model.nv), jnp.float32),
            "controls": shape((16, 64, model.nu), jnp.float32),
        },
        {"positions": "input", "velocities": "input", "controls": "input"},
    )


@program()
def mjx_policy(place: Place) -> Case:
    """The gradient of a network that steers, through four steps, each worked out again."""
    model, data = walker()

    def train_step(params: Any, positions: Any) -> tuple[Any, Any]:
        def loss(params: Any) -> Any:
            @jax.checkpoint
            def step(state: Any, _: Any) -> tuple[Any, Any]:
                hidden = jnp.tanh(jnp.concatenate([state.qpos, state.qvel]) @ params["in"])
                state = mjx.step(model, state.replace(ctrl=hidden @ params["out"]))
                return state, state.qpos[2]

            def height(position: Any) -> Any:
                return jax.lax.scan(step, data.replace(qpos=position), length=4)[1].mean()

            return -jnp.mean(jax.vmap(height)(positions))

        value, grads = jax.value_and_grad(loss)(params)
        return jax.tree.map(lambda p, g: p - 0.01 * g, params, grads), value

    shape = jax.ShapeDtypeStruct
    return Case(
        train_step,
        {
            "params": {
                "in": shape((model.nq + model.nv, 64), jnp.float32),
                "out": shape((64, model.nu), jnp.float32),
            },
            "positions": shape((32, model.nq), jnp.float32),
        },
        {"params": "weight", "positions": "input"},
        donated=("params",),
    )
