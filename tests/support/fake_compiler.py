"""A program that dumps as XLA does: real files, to the folder that XLA_FLAGS names.

    python fake_compiler.py PATTERN [PATTERN…] [--oom] [--cached]

Each pattern finds files of the sample dumps. As XLA does, it puts a time before the names if
XLA_FLAGS asks for that, one for all files of a module, and none before `.debug_options`.
`.debug_options` names the folder. `--oom` adds the file that XLA writes when it runs out of
memory, and `--cached` leaves only what XLA writes of a program that JAX took from its cache. It
prints XLA_FLAGS.
"""

import gzip
import os
import re
import shlex
import sys
import time
from pathlib import Path

DUMPS = Path(__file__).parents[1] / "data/dumps"
FINAL = re.compile(r"\.(?:\w+_)?after_optimizations\.txt$")


def flags():
    """XLA's flags, by name; the last of equal ones counts."""
    pairs = (
        word.removeprefix("--").partition("=") for word in shlex.split(os.environ["XLA_FLAGS"])
    )
    return {name: value for name, _, value in pairs}


def compile_as(pattern, to, *, timed, oom, cached):
    """Write the files of one module."""
    to.mkdir(parents=True, exist_ok=True)
    before = f"{time.time_ns() // 1000}." if timed else ""
    for path in sorted(DUMPS.glob(pattern)):
        text, name = path.read_bytes(), path.name
        if path.suffix == ".gz":
            text, name = gzip.decompress(text), path.stem
        if name.endswith(".debug_options"):
            text += f'xla_dump_to: "{to}"\n'.encode()
        if cached and not FINAL.search(name):
            continue
        if cached:
            name = FINAL.sub(".after_optimizations.txt", name)
        (to / (name if name.endswith(".debug_options") else before + name)).write_bytes(text)
        if oom and FINAL.search(name):
            failed = FINAL.sub(".oom_intermediate_module.txt", name)
            (to / (before + failed)).write_bytes(text)


if __name__ == "__main__":
    print(os.environ.get("XLA_FLAGS"), flush=True)
    options = {word for word in sys.argv[1:] if word.startswith("--")}
    for word in sys.argv[1:]:
        if word not in options:
            given = flags()
            compile_as(
                word,
                Path(given["xla_dump_to"]),
                timed=given.get("xla_dump_include_timestamp") == "true",
                oom="--oom" in options,
                cached="--cached" in options,
            )
