"""Which pass of the compiler differs, beside the pass that was changed.

`python benchmarks/passes.py compile OUT` with a Python that has JAX and libtpu compiles each
program as it is, OUT/base/PROGRAM, and with one pass or flag changed, OUT/VARIANT/PROGRAM; for TPU
ahead of time. `python benchmarks/passes.py table OUT` with memhouse ingests them and prints the
table of `docs/passes.md`. `python benchmarks/passes.py deep OUT LAYERS` compiles a training step of
that many layers, whose texts are what a large program has.
"""

# mypy: disable-error-code="no-untyped-call"

import os
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

_DISABLE = "--xla_disable_hlo_passes="
_SECONDS = 600


class Variant(NamedTuple):
    """A program of a platform, the option that is changed, and the passes that it changes."""

    platform: str
    program: str
    option: str
    passes: tuple[str, ...]


def _without(platform: str, program: str, name: str) -> Variant:
    return Variant(platform, program, f"{_DISABLE}{name}", (name,))


VARIANTS = (
    _without("cpu", "mlp", "fusion"),
    _without("cpu", "mlp", "dot-library-rewriter"),
    _without("cpu", "attention", "algsimp"),
    _without("cpu", "attention", "cse"),
    _without("cpu", "scan", "while-loop-invariant-code-motion"),
    _without("cpu", "scan", "simplify-while-loops"),
    Variant("tpu", "mlp", "xla_jf_enable_multi_output_fusion=false", ("tpu_multi_output_fusion",)),
    Variant(
        "tpu", "attention", "xla_jf_enable_multi_output_fusion=false", ("tpu_multi_output_fusion",)
    ),
    Variant("tpu", "parallel", "xla_jf_crs_combiner_threshold_count=1", ("all-reduce-combiner",)),
    Variant(
        "tpu",
        "parallel",
        "xla_jf_crs_combiner_threshold_in_bytes=600000",
        ("all-reduce-combiner",),
    ),
    _without("tpu", "scan", "while-loop-invariant-code-motion"),
    _without("tpu", "scan", "while-loop-constant-sinking"),
    _without("tpu", "scan", "bfloat16-propagation"),
    _without("tpu", "convolution", "convolution-folding"),
    _without("tpu", "attention", "transpose-folding"),
    _without("tpu", "convolution", "tpu_fusion"),
    Variant(
        "tpu",
        "sharded",
        "xla_tpu_enable_latency_hiding_scheduler=false",
        ("latency-hiding-scheduler",),
    ),
    Variant(
        "tpu",
        "wide",
        "xla_jf_rematerialization_percent_shared_memory_limit=2",
        ("rematerialization",),
    ),
)


def _loss(name: str) -> Any:
    """A program as a function of weights and inputs."""
    import jax
    import jax.numpy as jnp

    def mean(x: Any) -> Any:
        return (x.astype(jnp.float32) ** 2).mean()

    def mlp(w: Any, x: Any) -> Any:
        for number in range(3):
            x = jax.nn.gelu(x @ w[number])
        return mean(x)

    def scan(w: Any, x: Any) -> Any:
        shift = jnp.sin(w[0]) * 2
        return mean(jax.lax.scan(lambda c, layer: (jnp.tanh(c @ (layer + shift)), None), x, w)[0])

    def attention(w: Any, x: Any) -> Any:
        q, k, v = (x @ w[number] for number in range(3))
        weights = jax.nn.softmax((q @ k.T).astype(jnp.float32), -1).astype(x.dtype)
        return mean(weights @ v)

    def convolution(w: Any, x: Any) -> Any:
        for kernel in w:
            dimensions = ("NHWC", "HWIO", "NHWC")
            x = jax.lax.conv_general_dilated(
                x, kernel, (1, 1), "SAME", dimension_numbers=dimensions
            )
            x = jax.nn.relu(x)
        return mean(x)

    def parallel(w: Any, x: Any) -> Any:
        for layer in w:
            x = jnp.tanh(x @ layer)
        return mean(x)

    def deep(layers: Any, x: Any) -> Any:
        for p in layers:
            deviation = jax.lax.rsqrt(x.var(-1, keepdims=True) + 1e-5)
            h = (x - x.mean(-1, keepdims=True)) * deviation * p["s"]
            q, k, v = ((h @ p[name]).reshape(*x.shape[:2], 4, -1) for name in "qkv")
            weights = jax.nn.softmax(jnp.einsum("bqhd,bkhd->bhqk", q, k) / 8, -1)
            x = x + jnp.einsum("bhqk,bkhd->bqhd", weights, v).reshape(x.shape) @ p["o"]
            x = x + jax.nn.gelu(x @ p["a"]) @ p["b"]
        return mean(x)

    of_name = {
        "mlp": mlp,
        "wide": mlp,
        "scan": scan,
        "attention": attention,
        "convolution": convolution,
        "parallel": parallel,
        "sharded": parallel,
        "deep": deep,
    }
    return of_name[name]


def _lowered(platform: str, name: str, layers: int) -> Any:
    """The program, lowered for CPU or for a TPU v5e that is not there."""
    import jax
    import jax.numpy as jnp
    import numpy as np
    from jax.experimental import topologies
    from jax.sharding import Mesh, NamedSharding, PartitionSpec, SingleDeviceSharding

    devices = jax.devices()
    if platform == "tpu":
        devices = topologies.get_topology_desc(platform="tpu", topology_name="v5e:2x2").devices
    one: Any = SingleDeviceSharding(devices[0])
    # A scan of f32 has types that the compiler may narrow.
    dtype = jnp.float32 if platform == "cpu" or name == "scan" else jnp.bfloat16
    size = 64 if platform == "cpu" else 4096 if name == "wide" else 512

    def array(*shape: int, on: Any = one) -> Any:
        return jax.ShapeDtypeStruct(shape, dtype, sharding=on)

    weights: Any = array(3, size, size)
    inputs = array(4 * size, size)
    if name == "convolution":
        weights, inputs = [array(3, 3, 128, 128)] * 3, array(8, 32, 32, 128)
    if name in ("parallel", "sharded"):
        mesh = Mesh(np.array(devices[:4]), ("data",))
        spec = PartitionSpec() if name == "parallel" else PartitionSpec("data")
        weights = [array(size, size, on=NamedSharding(mesh, spec))] * 4
        inputs = array(4 * size, size, on=NamedSharding(mesh, PartitionSpec("data")))
    if name == "deep":
        width = 256
        square = dict.fromkeys("qkvo", (width, width))
        shapes = {"s": (width,), **square, "a": (width, 4 * width), "b": (4 * width, width)}
        weights = [{key: array(*shape) for key, shape in shapes.items()}] * layers
        inputs = array(8, 128, width)

    def step(w: Any, x: Any) -> Any:
        value, gradient = jax.value_and_grad(_loss(name))(w, x)
        return value, jax.tree.map(lambda p, g: p - 0.1 * g.astype(p.dtype), w, gradient)

    return jax.jit(step).lower(weights, inputs)


def compile_one(platform: str, name: str, option: str, layers: int = 1) -> None:
    """Compile one program in this process; a flag of XLA is in its environment already."""
    key, _, value = option.partition("=")
    options = {key: value} if key and not option.startswith("--") else None
    _lowered(platform, name, layers).compile(compiler_options=options)


def compile_all(out: Path) -> None:
    """Compile each program as it is, and each variant, in processes of their own."""
    bases = sorted({(variant.platform, variant.program) for variant in VARIANTS})
    for platform, program in bases:
        _apart(out / "base" / f"{platform}-{program}", platform, program)
    for number, variant in enumerate(VARIANTS):
        folder = out / f"{number:02}" / f"{variant.platform}-{variant.program}"
        _apart(folder, variant.platform, variant.program, variant.option)


def _apart(folder: Path, platform: str, program: str, option: str = "", layers: int = 1) -> None:
    if folder.exists():
        return
    dump = f"--xla_dump_to={folder.resolve()} --xla_dump_hlo_as_text --xla_dump_hlo_pass_re=.*"
    flags = f"{dump} {option}" if option.startswith("--") else dump
    # There is no TPU to fetch settings from.
    own = {"XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu", "TPU_SKIP_MDS_QUERY": "1"}
    command = [sys.executable, __file__, "one", platform, program, option, str(layers)]
    done = subprocess.run(
        command, env=os.environ | own, stderr=subprocess.DEVNULL, timeout=_SECONDS
    )
    print(folder, "compiled" if done.returncode == 0 else f"failed: {done.returncode}", flush=True)


def print_table(out: Path) -> None:
    """The pass that was changed, and the one that memhouse names first."""
    import memhouse

    with memhouse.open(out / "passes.duckdb") as warehouse:
        warehouse.ingest(out / "base", run="base")
        right = 0
        print("| program | changed | named | peak before | peak after |")
        print("| --- | --- | --- | ---: | ---: |")
        for number, variant in enumerate(VARIANTS):
            folder = out / f"{number:02}"
            if not any(folder.rglob("*after_optimizations.txt")):
                continue
            warehouse.ingest(folder, run=folder.name)
            program = f"{variant.platform}-{variant.program}"
            found = warehouse.diff("base", folder.name, workload=program).modules
            largest = max(found, key=lambda module: module.peak_bytes)
            told = largest.causes.table.to_pylist()
            passes = [row["term"] for row in told if row["kind"] == "pass"]
            peaks = [
                warehouse.peaks(run=run, workload=program).table["peak_bytes"][0].as_py()
                for run in ("base", folder.name)
            ]
            cells = [f"{peak / 2**20:.2f} MiB" for peak in peaks]
            named = passes[0] if passes else "nothing differs"
            right += any(name in named for name in variant.passes)
            print(f"| {program} | `{variant.option}` | {named} | {' | '.join(cells)} |")
        print(f"\nThe right pass is named in {right} of {len(VARIANTS)}.")


def read_deep(folder: Path) -> None:
    """What ingest of a large program's texts takes."""
    import memhouse

    with memhouse.open(folder / "deep.duckdb") as warehouse:
        warehouse.ingest(folder / "tpu-deep", run="deep")
        row = warehouse.sql(
            "SELECT COUNT(*) AS texts, SUM(text_bytes) AS bytes, MAX(instructions) AS n FROM passes"
        ).table.to_pylist()[0]
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{row['n']:,} instructions, {row['texts']} texts, {row['bytes'] / 2**20:,.0f} MiB")
    print(f"within {used:,.0f} MiB")


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["compile", out]:
            compile_all(Path(out))
        case ["table", out]:
            print_table(Path(out))
        case ["deep", out, layers]:
            _apart(Path(out) / "tpu-deep", "tpu", "deep", layers=int(layers))
        case ["read", out]:
            read_deep(Path(out))
        case ["one", platform, name, option, layers]:
            compile_one(platform, name, option, int(layers))
        case _:
            sys.exit(__doc__)
