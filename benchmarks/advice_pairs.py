"""Compile pairs of programs, before and after one change: what advice must foresee.

    python benchmarks/advice_pairs.py OUT [--platform tpu] [--only PAIR ...] [--jobs N]

Needs `jax`, and `libtpu` for `--platform tpu` (a v5e); a TPU is not needed, as nothing is run.
`--platform gpu` needs a GPU: there each program is also run, on zeros, for what the runtime takes.
Each program is compiled in a process of its own, because XLA reads its flags once in a process.
OUT/PLATFORM/PAIR/before and OUT/PLATFORM/PAIR/after then hold the scheduled HLO text, the buffer
assignment and the live ranges; a program that is right already has no `after`. A program that a
platform cannot compile leaves `error.txt` there instead.

OUT/PLATFORM/PAIR/pair.json says the kind of change (`Pair.kind` of `pairs/registry.py`) and, of a
checkpoint or of parts, the policy; and of each side the arguments that are donated, by number
and name, whether JAX warns that one is not usable, the argument that each output aliases, the
bytes of `memory_analysis()`, and of a GPU `ran`: the bytes in use at most, before the run, as XLA
tries kernels while it compiles, and after it.
"""

import argparse
import functools
import json
import os
import re
import shutil
import subprocess
import sys
import traceback
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

PLATFORMS = ("cpu", "tpu", "gpu")
KEPT = re.compile(r"after_optimizations(-buffer-assignment(-values)?|-live-range)?\.txt$")
ALIAS = re.compile(r"\{(\d*)\}: \((\d+), \{\}, m\w+-alias\)")
SAID = "said.json"
ANALYSIS = ("argument", "output", "alias", "temp", "generated_code")


def ran(jax, program, arguments):
    """Run a compiled program on zeros: the bytes in use at most, before and after."""
    import numpy as np

    device = jax.devices()[0]
    # Made by NumPy: what JAX makes is compiled, and dumped beside the program.
    zeros = jax.tree.map(
        lambda leaf: jax.device_put(np.zeros(leaf.shape, leaf.dtype), leaf.sharding), arguments
    )
    jax.block_until_ready(zeros)
    before = device.memory_stats()["peak_bytes_in_use"]
    jax.block_until_ready(program(*zeros))
    return {"before_bytes": before, "after_bytes": device.memory_stats()["peak_bytes_in_use"]}


def compiled(jax, name, side, platform):
    """Compile one side in this process, where XLA dumps it: what JAX says of it."""

    def named(*arguments):
        return side.function(*arguments)

    named.__name__ = name
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        lowered = jax.jit(named, donate_argnums=side.donated).lower(*side.arguments)
        program = lowered.compile()
    header = program.as_text().partition("\n")[0]
    figures = program.memory_analysis()
    infos, _ = jax.tree_util.tree_flatten_with_path(
        lowered.args_info[0], is_leaf=lambda leaf: hasattr(leaf, "donated")
    )
    donated = {
        number: jax.tree_util.keystr(path)
        for number, (path, info) in enumerate(infos)
        if info.donated
    }
    return {
        "arguments": len(infos),
        "donated": donated,
        "warns": any("not usable" in str(warning.message) for warning in said),
        "aliases": {f"{{{output}}}": int(number) for output, number in ALIAS.findall(header)},
        "memory_analysis": {
            f"{name}_bytes": getattr(figures, f"{name}_size_in_bytes") for name in ANALYSIS
        },
        "ran": ran(jax, program, side.arguments) if platform == "gpu" else None,
    }


def compile_one(name, which, platform, folder):
    """Compile one side of a pair; XLA writes its dump on the way."""
    import jax
    from pairs import PAIRS
    from places import Place

    # So that dumps name lines as pairs/training.py:82, wherever the checkout is.
    here = re.escape(str(Path(__file__).resolve().parent))
    jax.config.update("jax_hlo_source_file_canonicalization_regex", f"{here}/")
    side = getattr(PAIRS[name](Place(platform)), which)
    (folder / SAID).write_text(json.dumps(compiled(jax, name, side, platform)))


def keep_what_is_read(folder):
    """Delete what memhouse does not read."""
    for path in list(folder.iterdir()):
        if path.is_dir():
            shutil.rmtree(path)
        elif not KEPT.search(path.name):
            path.unlink()


def compile_apart(out, platform, name, which):
    """Compile one side in a process of its own: what JAX says of it, or None if it fails."""
    folder = out / platform / name / which
    folder.mkdir(parents=True)
    settings = {
        "XLA_FLAGS": f"--xla_dump_to={folder.resolve()} --xla_dump_hlo_as_text",
        "TPU_SKIP_MDS_QUERY": "1",
        # The lock keeps processes apart that run on a TPU; here they only compile.
        "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
        # Programs share a GPU.
        "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
    }
    command = [sys.executable, __file__, str(out), "--platform", platform, "--one", name, which]
    done = subprocess.run(
        command, env=os.environ | settings, capture_output=True, text=True, check=False
    )
    told = folder / SAID
    said = json.loads(told.read_text()) if told.exists() else None
    keep_what_is_read(folder)
    if said is None:
        (folder / "error.txt").write_text(done.stderr)
    return said


def copied(out, platform, name, which):
    """One side from another pair that has the same program: what JAX said of it, or None."""
    from pairs import SAME

    other, side = SAME.get((name, which), (name, which))
    told = out / platform / other / "pair.json"
    said = json.loads(told.read_text())[side] if told.exists() else None
    if said is not None:
        shutil.copytree(out / platform / other / side, out / platform / name / which)
    return said


def compile_pair(out, platform, name):
    """Compile both sides of a pair, and say how it went."""
    from pairs import PAIRS
    from places import Place

    folder = out / platform / name
    shutil.rmtree(folder, ignore_errors=True)
    # Only the shapes depend on the place, and they are not looked at.
    pair = PAIRS[name](Place("cpu"))
    told = {"kind": pair.kind, "policy": pair.policy}
    for which in ("before", "after"):
        if getattr(pair, which) is not None:
            told[which] = copied(out, platform, name, which) or compile_apart(
                out, platform, name, which
            )
    (folder / "pair.json").write_text(json.dumps(told, indent=1) + "\n")
    failed = [which for which, said in told.items() if said is None and which != "policy"]
    print(
        f"{platform} {name}: {'failed: ' + ', '.join(failed) if failed else 'compiled'}", flush=True
    )


def main():
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--platform", choices=PLATFORMS, default="cpu")
    parser.add_argument("--only", nargs="+", metavar="PAIR")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    # A TPU is asked for by its topology.
    os.environ["JAX_PLATFORMS"] = "cuda,cpu" if given.platform == "gpu" and given.one else "cpu"
    if given.one:
        name, which = given.one
        folder = given.out / given.platform / name / which
        try:
            compile_one(name, which, given.platform, folder)
        except Exception:
            # The whole trace goes to the file.
            traceback.print_exc()
            sys.exit(1)
        return
    from pairs import PAIRS

    compile_next = functools.partial(compile_pair, given.out, given.platform)
    with ThreadPoolExecutor(given.jobs) as jobs:
        list(jobs.map(compile_next, given.only or PAIRS))


if __name__ == "__main__":
    main()
