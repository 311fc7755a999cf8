"""Ask XLA what it says of scheduled HLO texts, taken exactly as they stand.

    python benchmarks/ask_xla.py TEXTS OUT

TEXTS is a folder of `NUMBER.hlo` files. XLA's CPU compiler gets a program of the same signature,
and after its scheduler that program is replaced by the text: buffer assignment, and all that XLA
dumps of it, then are those of the text. No pass changes it. OUT gets the dumps, as
`module_NNNN.case_NUMBER.…`. So any rule can be tried on a program made for it, fusions and
asynchronous operations included; what the CPU cannot run is dumped nevertheless.

Needs `jax` from 0.10.2 on. XLA ends the whole process over some texts, after the dump: a new
process then goes on with the next text. `--random N` makes N random texts first; these need
`hypothesis` too, or can be made in another environment.
"""

import argparse
import os
import re
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from tests.ingest.model import plain_text

KEPT = re.compile(r"after_optimizations(-[a-z-]+)?\.txt$")


def make_random(folder, count, seed):
    """Write random texts whose signatures the client takes."""
    from hypothesis import HealthCheck, Phase, given, settings
    from hypothesis import seed as seeded

    from tests.ingest.model import random_programs

    made = []

    @seeded(seed)
    @settings(
        max_examples=count,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(random_programs.scheduled_hlo(nested=False))
    def write(text):
        (folder / f"{len(made)}.hlo").write_text(text)
        made.append(text)

    write()


def shown(shape):
    """A shape without its layouts."""
    if isinstance(shape, str):
        return re.sub(r"\{.*?\}", "", shape)
    return f"({', '.join(shown(part) for part in shape)})"


def stand_in(text, name):
    """A program of the same signature, made of constants."""
    module = plain_text.read_module(text)
    entry = module.computations[module.entry]
    found = [x for x in entry.instructions if x.opcode == "parameter"]
    lines = [f"p{x.inside} = {shown(x.shape)} parameter({x.inside})" for x in found]

    def build(shape):
        number = len(lines)
        if isinstance(shape, str):
            kind = shape.split("[")[0]
            literal = "false" if kind == "pred" else "0"
            lines.append(f"c{number} = {kind}[] constant({literal})")
            lines.append(f"v{number} = {shown(shape)} broadcast(c{number}), dimensions={{}}")
        else:
            parts = ", ".join([build(part) for part in shape])
            number = len(lines)
            lines.append(f"v{number} = {shown(shape)} tuple({parts})")
        return f"v{number}"

    build(entry.root.shape)
    lines[-1] = "ROOT " + lines[-1]
    return "\n".join([f"HloModule {name}", "ENTRY main {", *lines, "}"])


def ask(texts):
    """Compile the texts in this process, until XLA ends it."""
    import jax
    from jax.extend import xla
    from jaxlib import _hlo, _jax, xla_client

    device = jax.devices("cpu")[0]
    devices = xla_client.DeviceList((device,))
    waiting = []

    def replace(_):
        if not waiting:
            return None
        return _hlo.hlo_module_from_text(waiting.pop()).as_serialized_hlo_module_proto()

    xla.register_hlo_module_transformation(
        replace, name="replace", stage=xla.PipelineStage.POST_SCHEDULER, platforms="cpu"
    )
    for path in texts:
        print("start", path.stem, flush=True)
        text = path.read_text()
        try:
            stub = _hlo.hlo_module_from_text(stand_in(text, f"case_{path.stem}"))
            program = _jax.mlir.hlo_to_stablehlo(stub.as_serialized_hlo_module_proto())
            waiting[:] = [text]
            device.client.compile_and_load(program, devices, xla_client.CompileOptions())
        except Exception as error:
            # The CPU runs few of the asynchronous operations; the dump is there already.
            print("error", path.stem, str(error).replace("\n", " ")[:200], flush=True)


def ask_all(folder, out):
    """Compile all texts, with as many processes one after another as it takes."""
    texts = sorted(folder.glob("*.hlo"), key=lambda path: int(path.stem))
    out.mkdir(parents=True, exist_ok=True)
    flags = f"--xla_dump_to={out.resolve()} --xla_dump_hlo_as_text"
    settings = {"XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"}
    at = 0
    while at < len(texts):
        command = [sys.executable, __file__, str(folder), str(out), "--first", str(at)]
        done = subprocess.run(
            command, env=os.environ | settings, capture_output=True, text=True, check=False
        )
        started = done.stdout.count("start ")
        if not started:
            sys.exit(done.stderr)
        print("\n".join(line for line in done.stdout.splitlines() if line.startswith("error")))
        at += started
    for path in out.iterdir():
        if path.is_file() and not KEPT.search(path.name):
            path.unlink()
    dumped = sum(path.name.endswith("after_optimizations.txt") for path in out.iterdir())
    print(f"{len(texts)} texts, {dumped} dumps")


def main():
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("texts", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--random", type=int, metavar="N")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.first is not None:
        texts = sorted(given.texts.glob("*.hlo"), key=lambda path: int(path.stem))
        ask(texts[given.first :])
        return
    if given.random:
        given.texts.mkdir(parents=True, exist_ok=True)
        make_random(given.texts, given.random, given.seed)
    ask_all(given.texts, given.out)


if __name__ == "__main__":
    main()
