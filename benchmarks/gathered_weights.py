"""Compile a network whose weights lie on four devices, with and without gathering them again.

    python benchmarks/gathered_weights.py OUT [--layers N] [--batch N]

Needs `jax` and `libtpu`; a TPU is not needed, as nothing is run. OUT/before and OUT/after then hold
the scheduled HLO text, the buffer assignment and the live ranges of one program for a v5e of four
chips: after the change each layer is in a `jax.checkpoint` that keeps its products alone. With
`--layers 3 --batch 1024` these are the dumps of `tests/data/gathered.tar.zst`, but for names.
"""

import argparse
import os
import re
import subprocess
import sys
from pathlib import Path

from advice_pairs import keep_what_is_read

WIDTH = 8192
DEVICES = 4


def compile_one(which, layers, batch):
    """Compile one side in this process, where XLA dumps it."""
    import jax
    import jax.numpy as jnp
    import numpy as np
    from jax.experimental import topologies
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    # So that dumps name lines as gathered_weights.py:48, wherever the checkout is.
    here = re.escape(str(Path(__file__).resolve().parent))
    jax.config.update("jax_hlo_source_file_canonicalization_regex", f"{here}/")
    devices = topologies.get_topology_desc("v5e:2x2", platform="tpu").devices
    mesh = Mesh(np.array(devices).reshape(DEVICES), ("data",))
    split = PartitionSpec("data")

    def layer(x, weight):
        whole = jax.lax.all_gather(weight, "data", axis=0, tiled=True)
        return jnp.tanh(x @ whole)

    if which == "after":
        layer = jax.checkpoint(layer, policy=jax.checkpoint_policies.dots_saveable)

    def loss(params, x):
        for weight in params["layers"]:
            x = layer(x, weight)
        return jnp.mean(x.astype(jnp.float32) ** 2)

    def step(params, x):
        gradients = jax.grad(loss)(params, x)
        return jax.tree.map(lambda weight, change: weight - 1e-3 * change, params, gradients)

    mapped = jax.shard_map(
        step, mesh=mesh, in_specs=(split, split), out_specs=split, check_vma=False
    )

    def fsdp(params, x):
        return mapped(params, x)

    def array(*shape):
        return jax.ShapeDtypeStruct(shape, jnp.bfloat16, sharding=NamedSharding(mesh, split))

    params = {"layers": [array(WIDTH, WIDTH) for _ in range(layers)]}
    jax.jit(fsdp, donate_argnums=0).lower(params, array(DEVICES * batch, WIDTH)).compile()


def main():
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--layers", type=int, default=3)
    parser.add_argument("--batch", type=int, default=1024, help="on each device")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    given = parser.parse_args()
    # A TPU is asked for by its topology.
    os.environ["JAX_PLATFORMS"] = "cpu"
    if given.one:
        compile_one(given.one, given.layers, given.batch)
        return
    for which in ("before", "after"):
        folder = given.out / which
        folder.mkdir(parents=True)
        settings = {
            "XLA_FLAGS": f"--xla_dump_to={folder.resolve()} --xla_dump_hlo_as_text",
            "TPU_SKIP_MDS_QUERY": "1",
        }
        # XLA reads its flags once in a process.
        command = [sys.executable, *sys.argv, "--one", which]
        subprocess.run(command, env=os.environ | settings, check=True)
        keep_what_is_read(folder)


if __name__ == "__main__":
    main()
