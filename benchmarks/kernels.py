"""The memory that Pallas kernels take, beside what `memhouse kernels` says of their dumps.

For TPU, compiled ahead of time: `python benchmarks/kernels.py truth OUT` with a Python that has JAX
and libtpu writes OUT/CHIP/KERNEL/, a dump of a kernel, and OUT/truth.json. Truth is found by
lowering the kernel's limit until the compiler refuses: the least KiB that it accepts, and the size
that its refusal names. `python benchmarks/kernels.py table OUT` with memhouse ingests the dumps
and prints the table of `docs/kernels.md`.
"""

# JAX types parts of Pallas otherwise than they are called.
# mypy: disable-error-code="arg-type, assignment, attr-defined, no-untyped-call"

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

CHIPS = {"v5e": "v5e:2x2", "v6e": "v6e:2x2"}
KIB = 1024
_SIZE = re.compile(r"Scoped allocation with size ([\d.]+)([KMG]?) and limit")
_USED = re.compile(
    r'"used_scoped_memory_configs":\[\{"memory_space":"1","offset":"0","size":"(\d+)"'
)
# There is no TPU to fetch settings from, or to share with another process.
_ENVIRONMENT = {
    "JAX_PLATFORMS": "cpu",
    "TPU_SKIP_MDS_QUERY": "1",
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
}
_UNITS = {"": 1, "K": KIB, "M": KIB**2, "G": KIB**3}

# A kernel: a function and the shapes of its arguments.
Kernel = tuple[Callable[..., Any], tuple[Any, ...]]


def _array(dtype: str, *shape: int) -> Any:
    import jax
    import jax.numpy as jnp

    return jax.ShapeDtypeStruct(shape, getattr(jnp, dtype))


def _blocks(
    dtype: str,
    grid: tuple[int, ...],
    block: tuple[int, ...],
    index: Callable[..., tuple[int, ...]],
    *,
    buffers: int = 0,
    scratch: tuple[Any, ...] = (),
    semantics: tuple[str, ...] | None = None,
) -> Kernel:
    """A kernel that doubles an array block by block, and touches all its scratch."""
    from jax.experimental import pallas as pl
    from jax.experimental.pallas import tpu as pltpu

    def double(read: Any, written: Any, *refs: Any) -> None:
        value = read[...] | read[...] if dtype == "int8" else read[...] + read[...]
        for ref in refs:
            if "sem" not in str(ref.dtype):
                ref[...] = ref[...] + ref[...]
        written[...] = value

    corner = [0] * len(block)
    for axis in range(len(grid)):
        last = index(*(size - 1 if at == axis else 0 for at, size in enumerate(grid)))
        corner = [max(pair) for pair in zip(corner, last, strict=True)]
    shape = [size * (at + 1) for size, at in zip(block, corner, strict=True)]
    mode = {"pipeline_mode": pl.Buffered(buffers)} if buffers else {}
    spec = pl.BlockSpec(block, index, **mode)
    array = _array(dtype, *shape)
    params = pltpu.CompilerParams(dimension_semantics=semantics)
    call = pl.pallas_call(
        double,
        out_shape=array,
        grid=grid,
        in_specs=[spec],
        out_specs=pl.BlockSpec(block, index),
        scratch_shapes=scratch,
        compiler_params=params,
    )
    return call, (array,)


def _matmul(dtype: str, block: tuple[int, int], block_k: int) -> Kernel:
    from jax.experimental.pallas.ops.tpu.matmul import matmul

    arrays = _array(dtype, 1024, 1024), _array(dtype, 1024, 1024)
    return partial(matmul, block_shape=block, block_k=block_k), arrays


def _flash(*, causal: bool, heads: int = 2, length: int = 1024) -> Kernel:
    from jax.experimental.pallas.ops.tpu.flash_attention import flash_attention

    array = _array("bfloat16", 1, heads, length, 128)
    return partial(flash_attention, causal=causal), (array, array, array)


def _backward(kernel: Kernel, number: int) -> Kernel:
    """The gradient by one argument: the other kernels of a backward pass are dead code."""
    import jax

    forward, arrays = kernel
    return jax.grad(lambda *given: forward(*given).astype("float32").sum(), number), arrays


def _splash(block: int, length: int = 2048) -> Kernel:
    from jax.experimental.pallas.ops.tpu.splash_attention import splash_attention_kernel as splash
    from jax.experimental.pallas.ops.tpu.splash_attention import splash_attention_mask as masks

    mask = masks.MultiHeadMask([masks.CausalMask((length, length))] * 2)
    sizes = splash.BlockSizes(block_q=block, block_kv=block, block_kv_compute=block)
    array = _array("bfloat16", 2, length, 128)
    kernel = splash.make_splash_mha(mask, head_shards=1, q_seq_shards=1, block_sizes=sizes)
    return kernel, (array, array, array)


def _megablox(name: str, tiling: tuple[int, int, int]) -> Kernel:
    from jax.experimental.pallas.ops.tpu.megablox.gmm import gmm, tgmm

    tokens, width, hidden, groups = 2048, 512, 1024, 8
    if name == "gmm":
        arrays = _array("bfloat16", tokens, width), _array("bfloat16", groups, width, hidden)
    else:
        arrays = _array("bfloat16", width, tokens), _array("bfloat16", tokens, hidden)
    return partial(gmm if name == "gmm" else tgmm, tiling=tiling), (
        *arrays,
        _array("int32", groups),
    )


def _paged(pages: int) -> Kernel:
    from jax.experimental.pallas.ops.tpu.paged_attention import paged_attention

    kept = _array("bfloat16", 8, 128, 16, 128)
    return partial(paged_attention, pages_per_compute_block=pages), (
        _array("bfloat16", 4, 32, 128),
        kept,
        kept,
        _array("int32", 4),
        _array("int32", 4, 32),
    )


def _ragged() -> Kernel:
    from jax.experimental.pallas.ops.tpu.ragged_paged_attention import ragged_paged_attention

    attention = partial(ragged_paged_attention, num_kv_pages_per_block=8, num_queries_per_block=32)
    return attention, (
        _array("bfloat16", 128, 16, 128),
        _array("bfloat16", 128, 16, 8, 128),
        _array("int32", 8),
        _array("int32", 8, 16),
        _array("int32", 9),
        _array("int32", 1),
    )


def _example() -> Kernel:
    from jax.experimental.pallas.ops.tpu.example_kernel import double

    return double, (_array("float32", 256, 256),)


def _threefry() -> Kernel:
    from jax.experimental.pallas.ops.tpu.random.threefry import threefry_2x32_count

    return (
        lambda key: threefry_2x32_count(key, (512, 512), (512, 512), (256, 256)),
        (_array("uint32", 2),),
    )


def _run_scoped() -> Kernel:
    """A kernel that allocates inside of its body, and copies by hand."""
    from jax.experimental import pallas as pl
    from jax.experimental.pallas import tpu as pltpu

    def body(read: Any, written: Any) -> None:
        def inner(held: Any, done: Any) -> None:
            pltpu.async_copy(read.at[pl.ds(0, 256)], held, done).wait()
            held[...] = held[...] * 2
            pltpu.async_copy(held, written.at[pl.ds(0, 256)], done).wait()

        pl.run_scoped(inner, pltpu.VMEM((256, 512), "float32"), pltpu.SemaphoreType.DMA)

    array = _array("float32", 2048, 512)
    anywhere = pl.BlockSpec(memory_space=pl.ANY)
    call = pl.pallas_call(body, out_shape=array, in_specs=[anywhere], out_specs=anywhere)
    return call, (array,)


def _emit_pipeline() -> Kernel:
    """A pipeline inside of a kernel."""
    from jax.experimental import pallas as pl
    from jax.experimental.pallas import tpu as pltpu

    def step(read: Any, written: Any) -> None:
        written[...] = read[...] + 1

    def body(read: Any, written: Any) -> None:
        spec = pl.BlockSpec((256, 512), lambda i: (i, 0))
        pltpu.emit_pipeline(step, grid=(8,), in_specs=[spec], out_specs=[spec])(read, written)

    array = _array("float32", 2048, 512)
    anywhere = pl.BlockSpec(memory_space=pl.ANY)
    call = pl.pallas_call(body, out_shape=array, in_specs=[anywhere], out_specs=anywhere)
    return call, (array,)


def kernels() -> dict[str, Callable[[], Kernel]]:
    """The kernels by their names."""
    from jax.experimental.pallas import tpu as pltpu

    def rows(i: int) -> tuple[int, int]:
        return i, 0

    blocks = partial(partial, _blocks)
    flash = partial(_flash, causal=True)
    return {
        "example": _example,
        "rows-f32": blocks("float32", (8,), (512, 512), rows),
        "rows-bf16": blocks("bfloat16", (8,), (512, 512), rows),
        "rows-int8": blocks("int8", (8,), (512, 512), rows),
        "one-step": blocks("float32", (1,), (512, 512), rows),
        "padded": blocks("float32", (2048,), (4, 20, 200), lambda i: (i, 0, 0)),
        "lines": blocks("float32", (2048,), (64, 1, 256), lambda i: (i, 0, 0)),
        "kept": blocks("float32", (4, 4), (256, 256), lambda i, j: (i, 0)),
        "constant": blocks("float32", (4,), (512, 512), lambda i: (0, 0)),
        "grid-3d": blocks("bfloat16", (2, 2, 4), (128, 512), lambda i, j, k: (i + j, k)),
        "parallel": blocks("float32", (8,), (256, 512), rows, semantics=("parallel",)),
        "single": blocks("float32", (8,), (512, 512), rows, buffers=1),
        "row": blocks("float32", (1, 8), (256, 512), lambda i, j: (j, 0)),
        "still": blocks("float32", (1, 8), (256, 512), lambda i, j: (i, 0)),
        "tall": blocks("float32", (8,), (8192, 32), rows),
        "scratch": lambda: _blocks(
            "bfloat16", (4,), (256, 512), rows, scratch=(pltpu.VMEM((512, 640), "float32"),)
        ),
        "scratch-small": lambda: _blocks(
            "float32",
            (4,),
            (256, 512),
            rows,
            scratch=(
                pltpu.VMEM((1, 3), "float32"),
                pltpu.VMEM((7, 5, 130), "bfloat16"),
                pltpu.SemaphoreType.DMA((4,)),
            ),
        ),
        "run-scoped": _run_scoped,
        "emit-pipeline": _emit_pipeline,
        "matmul-bf16": partial(_matmul, "bfloat16", (512, 512), 256),
        "matmul-f32": partial(_matmul, "float32", (256, 512), 512),
        "matmul-int8": partial(_matmul, "int8", (512, 512), 512),
        "flash": partial(_flash, causal=False),
        "flash-causal": flash,
        "flash-dkv": lambda: _backward(flash(), 1),
        "flash-dq": lambda: _backward(flash(), 0),
        "splash-512": partial(_splash, 512),
        "splash-1024": partial(_splash, 1024),
        "gmm": partial(_megablox, "gmm", (512, 512, 512)),
        "tgmm": partial(_megablox, "tgmm", (512, 512, 512)),
        "paged": partial(_paged, 8),
        "ragged": _ragged,
        "threefry": _threefry,
    }


def _compiled(name: str, chip: str, limit: int | None = None) -> str:
    """The text of a compiled kernel that may use `limit` bytes of VMEM."""
    import jax
    from jax.experimental import pallas as pl
    from jax.experimental import topologies
    from jax.experimental.pallas import tpu as pltpu
    from jax.sharding import AbstractDevice, AbstractMesh, SingleDeviceSharding

    call = pl.pallas_call

    def limited(*given: Any, compiler_params: Any = None, **options: Any) -> Any:
        params = compiler_params or pltpu.CompilerParams()
        if limit is not None:
            params = replace(params, vmem_limit_bytes=limit)
        return call(*given, compiler_params=params, **options)

    topology = topologies.get_topology_desc(platform="tpu", topology_name=CHIPS[chip])
    device = topology.devices[0]
    place = SingleDeviceSharding(device)
    kind = AbstractDevice(device_kind=device.device_kind, num_cores=1, platform="tpu")
    # What was traced with another limit.
    jax.clear_caches()
    with (
        mock.patch.object(pl, "pallas_call", limited),
        jax.sharding.use_abstract_mesh(AbstractMesh((), (), abstract_device=kind)),
    ):
        function, arrays = kernels()[name]()
        lowered = jax.jit(function, in_shardings=place, out_shardings=place).lower(*arrays)
    text: str = lowered.compile().as_text()
    return text


def _refusal(name: str, chip: str, limit: int) -> str | None:
    """What the compiler says against a limit; None if it accepts it."""
    try:
        _compiled(name, chip, limit)
    except Exception as error:
        if "RESOURCE_EXHAUSTED" not in str(error):
            raise
        return str(error)
    return None


def truth_of(name: str, chip: str) -> dict[str, Any]:
    """The least limit that a kernel compiles with, in KiB, and the size in the refusal below it."""
    said = _USED.findall(_compiled(name, chip))
    # Where to look first; that it is the truth, the compiler's refusal shows.
    guess = max(1, -(-max(map(int, said), default=0) // KIB))
    low, high, step = 0, guess, 1
    refused = None
    while (refusal := _refusal(name, chip, high * KIB)) is not None:
        refused, low, high, step = refusal, high, high + step, step * 2
    step = 1
    while high - low > 1:
        middle = max(low + 1, high - step) if step else (low + high) // 2
        refusal = _refusal(name, chip, middle * KIB)
        if refusal is None:
            high, step = middle, step * 2
        else:
            refused, low, step = refusal, middle, 0
    named = _SIZE.search(refused or "")
    size = int(float(named[1]) * _UNITS[named[2]]) if named else None
    return {"kernel": name, "chip": chip, "least_kib": high, "refused_bytes": size}


def _apart(*command: str, flags: str = "") -> str:
    """Run this file in a process of its own: a compiler that fails may end the process."""
    done = subprocess.run(
        [sys.executable, __file__, *command],
        env=os.environ | {"XLA_FLAGS": flags},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return done.stdout


def write_truth(out: Path, names: list[str]) -> None:
    """Write the dumps and the truth of the kernels."""
    truth = out / "truth.json"
    rows = json.loads(truth.read_text()) if truth.exists() else []
    for chip in CHIPS:
        for name in names or kernels():
            folder = out / chip / name
            folder.mkdir(parents=True, exist_ok=True)
            try:
                row = json.loads(_apart("one", name, chip).splitlines()[-1])
                dump = f"--xla_dump_to={folder.resolve()} --xla_dump_hlo_as_text"
                (folder / "executable.txt").write_text(_apart("compile", name, chip, flags=dump))
            except subprocess.CalledProcessError as error:
                row = {"kernel": name, "chip": chip, "failed": str(error)}
            rows = [other for other in rows if (other["kernel"], other["chip"]) != (name, chip)]
            rows.append(row)
            print(row, flush=True)
            truth.write_text(json.dumps(rows, indent=1))


def print_table(out: Path) -> None:
    """The truth, and what memhouse says of the executable's text and of the dump, in KiB."""
    import memhouse
    from memhouse.cli import run

    db = out / "kernels.duckdb"
    db.unlink(missing_ok=True)
    sys.argv[1:] = ["ingest", str(out), "--db", str(db)]
    run()
    query = "SELECT workload, is_bound, MAX(scoped_bytes) AS size FROM kernels GROUP BY ALL"
    with memhouse.open(db, read_only=True) as warehouse:
        sizes = {
            (row["workload"], row["is_bound"]): row["size"]
            for row in warehouse.sql(query).table.to_pylist()
        }
    print("| kernel | chip | truth | executable | dump | dump / truth |")
    print("| --- | --- | ---: | ---: | ---: | ---: |")
    for row in json.loads((out / "truth.json").read_text()):
        if "failed" in row:
            continue
        workload, least = f"{row['chip']}/{row['kernel']}", row["least_kib"]
        said, bound = (sizes.get((workload, is_bound)) for is_bound in (False, True))
        share = "" if bound is None else f"{bound / KIB / least:.2f}"
        cells = [f"{size / KIB:,.0f}" if size is not None else "?" for size in (said, bound)]
        print(f"| {row['kernel']} | {row['chip']} | {least:,} | {' | '.join(cells)} | {share} |")


if __name__ == "__main__":
    os.environ.update(_ENVIRONMENT)
    match sys.argv[1:]:
        case ["truth", out, *names]:
            write_truth(Path(out), names)
        case ["table", out]:
            print_table(Path(out))
        case ["one", name, chip]:
            print(json.dumps(truth_of(name, chip)))
        case ["compile", name, chip]:
            print(_compiled(name, chip))
