"""Compile small programs with and without donated arguments, and keep what JAX and XLA say.

    python benchmarks/donation_programs.py OUT [--platform tpu]

Needs `jax`, and `libtpu` for `--platform tpu`; a TPU is not needed, as nothing is run. OUT then
holds the HLO text, the buffer assignment and the live ranges of each program, once as it is and
once with its first arguments donated. OUT/jax.json says of each: the arguments that JAX donates,
which of them it warns about, the result that each one aliases, and the bytes of
`memory_analysis()`. `tests/data/donations.tar.zst` holds both platforms.
"""

import argparse
import json
import os
import re
import shutil
import warnings
from pathlib import Path

KEPT = re.compile(r"after_optimizations(-buffer-assignment(-values)?|-live-range)?\.txt$")
ALIAS = re.compile(r"\{(\d*)\}: \((\d+), \{\}, may-alias\)")
# Of a TPU the arrays are larger than VMEM, which otherwise holds the copies.
ROWS = {"cpu": 128, "tpu": 8192}


def programs(jax, rows, array):
    """Name, function, shapes of its arguments and how many of them to donate."""
    jnp = jax.numpy
    wide = array((rows, 2 * rows))

    def read_after(x):
        y = jnp.cumsum(x, 0)
        return y, jnp.sum(x * y[0, 0])

    def scanned(cache, start):
        return jax.lax.scan(lambda c, x: (c + jnp.sum(x), x.at[0].set(c)), start, cache)

    def carried(cache, x):
        return jax.lax.fori_loop(0, 16, lambda i, c: c.at[i].set(x * i), cache)

    def step(params, gradients):
        norm = sum(jnp.sum(p * p) for p in params.values())
        return {name: p - 0.1 * gradients[name] for name, p in params.items()}, norm

    params = {"w": wide, "b": array((rows,))}
    cache = array((16, rows // 8, rows // 2))
    return [
        ("same_shape", lambda x: jnp.sin(x) + 1, [wide], 1),
        ("same_bytes", lambda x: jnp.sin(x).T @ x @ x.T, [wide], 1),
        ("reshaped", lambda x: jnp.sin(x).reshape(rows // 2, 2, 2 * rows), [wide], 1),
        ("other_type", lambda x: x.astype(jnp.int32) + 1, [wide], 1),
        (
            "fewer_elements",
            lambda x: jnp.sum(x.reshape(rows // 2, 2, 2 * rows).astype(jnp.float32), 1),
            [array((rows, 2 * rows), jnp.bfloat16)],
            1,
        ),
        ("read_after", read_after, [wide], 1),
        ("inference", lambda x, w: jax.nn.relu(x @ w), [array((8, rows)), wide], 2),
        ("crossed", lambda x, y: (y * 2, x * 2), [wide, wide], 2),
        ("matrix_product", lambda x: x @ x, [array((rows, rows))], 1),
        ("scanned_cache", scanned, [cache, array((rows // 2,))], 1),
        ("carried_cache", carried, [cache, array((rows // 8, rows // 2))], 1),
        ("training_step", step, [params, params], 1),
    ]


def compiled(jax, name, function, arguments, donated):
    """Compile a program: what JAX says of it."""

    def named(*args):
        return function(*args)

    named.__name__ = name
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        lowered = jax.jit(named, donate_argnums=tuple(range(donated))).lower(*arguments)
        program = lowered.compile()
    header = program.as_text().partition("\n")[0]
    figures = program.memory_analysis()
    infos = jax.tree.leaves(lowered.args_info, is_leaf=lambda leaf: hasattr(leaf, "donated"))
    return {
        "donated": [number for number, info in enumerate(infos) if info.donated],
        "warns": any("not usable" in str(warning.message) for warning in said),
        "aliases": {int(number): f"{{{output}}}" for output, number in ALIAS.findall(header)},
        "argument_bytes": figures.argument_size_in_bytes,
        "output_bytes": figures.output_size_in_bytes,
        "alias_bytes": figures.alias_size_in_bytes,
        "temp_bytes": figures.temp_size_in_bytes,
    }


def main():
    """Compile the programs for a platform."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--platform", choices=sorted(ROWS), default="cpu")
    options = parser.parse_args()
    os.environ["XLA_FLAGS"] = f"--xla_dump_to={options.out} --xla_dump_hlo_as_text"
    os.environ["JAX_PLATFORMS"] = "cpu"
    import jax

    device = jax.devices()[0]
    if options.platform == "tpu":
        from jax.experimental import topologies

        device = topologies.get_topology_desc("v5e:2x2", platform="tpu").devices[0]
    place = jax.sharding.SingleDeviceSharding(device)

    def array(shape, type_="float32"):
        return jax.ShapeDtypeStruct(shape, type_, sharding=place)

    said = {}
    for name, function, arguments, donated in programs(jax, ROWS[options.platform], array):
        said[f"{name}_kept"] = compiled(jax, f"{name}_kept", function, arguments, 0)
        said[f"{name}_donated"] = compiled(jax, f"{name}_donated", function, arguments, donated)
    for path in options.out.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        elif not KEPT.search(path.name):
            path.unlink()
    (options.out / "jax.json").write_text(json.dumps(said, indent=1) + "\n")


if __name__ == "__main__":
    main()
