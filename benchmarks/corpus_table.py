"""Compile programs over public packages, and hold memhouse against what it reads of them.

    .venv/bin/python benchmarks/corpus_table.py OUT [--venv new] [--device cpu v5e] [--only NAME …]

The programs are in `corpus/`, a file a family. OUT/venvs gets an environment for each file of
`corpus/requirements`, OUT/dumps what XLA dumps of each program: a run for each environment and
device, in which a program is a workload. Each program is compiled in a process of its own, with
limits of time and memory, ahead of time: no TPU and no GPU is needed. What is compiled already is
not compiled again, so that a command that was stopped goes on; `--again` compiles it. `--compiled`
looks at nothing else and needs no environment. `--newest` takes the newest packages in place of the
pinned ones.

Then a line a program, as memhouse reads it: instructions; what was not read; breaches of `verify`;
which totals differ from JAX's `memory_analysis()`; of the peak in the device's memory: the share of
arrays without owner, and of what is no argument, the share whose owner is a line of a library; the
share of the arguments' bytes whose role is not that of the pytree that was passed in; and the
seconds to compile and to ingest. `!` marks what is beyond its limit. The exit status is 1 if
anything is.
"""

import argparse
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import time
import venv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import memhouse

HERE = Path(__file__).resolve().parent
REQUIREMENTS = HERE / "corpus" / "requirements"
# The environments, with their families of programs.
ENVIRONMENTS = {
    "new": (
        "plain", "linen", "nnx", "haiku", "equinox", "diffrax", "keras_jax", "keras_hub_models",
        "numpyro", "jax_md", "mjx", "brax", "pallas",
    ),
    "old": ("plain", "linen", "haiku", "equinox"),
    "tensorflow": ("tensorflow_keras",),
    "torch": ("torch_programs",),
}  # fmt: skip
DEVICES = ("cpu", "v5e", "v6e", "7x", "h100")
KEPT = re.compile(
    r"after_optimizations(-[a-z-]+)?\.(txt|hlo\.pb)$"
    r"|\.(debug_options|flagfile|target_arguments\.txt|gpu_target_config\.pbtxt)$"
)
GIB = 1 << 30
VARIABLES = {
    # A TPU is asked for by its topology, and no process waits for another one's TPU.
    "JAX_PLATFORMS": "cpu",
    "TPU_SKIP_MDS_QUERY": "1",
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
    # So that the last line of an error says what it is.
    "JAX_TRACEBACK_FILTERING": "off",
    # PyTorch/XLA names lines of Python where it is asked to.
    "PJRT_DEVICE": "CPU",
    "XLA_HLO_DEBUG": "1",
    "XLA_IR_DEBUG": "1",
}


# Compiles the programs, each in a process of its own.


@dataclass(frozen=True)
class Wanted:
    """A program, the environment that it is compiled in, and the device that it is for."""

    environment: str
    device: str
    name: str

    @property
    def run(self) -> str:
        """The run of its dump."""
        return f"{self.environment}-{self.device}"


@dataclass(frozen=True)
class Limits:
    """Of a process: seconds of the processor, and bytes of memory."""

    seconds: int
    memory: int


def python_of(out: Path, name: str, newest: bool) -> Path:
    """The Python of an environment, which is made if its requirements are not those asked for."""
    folder = out / "venvs" / name
    requirements = (REQUIREMENTS / f"{name}.txt").read_text()
    if newest:
        requirements = re.sub(r"==.*", "", requirements)
    made_of, python = folder / "requirements.txt", folder / "bin" / "python"
    if not made_of.exists() or made_of.read_text() != requirements:
        venv.create(folder, with_pip=True, clear=True)
        asked = folder / "asked.txt"
        asked.write_text(requirements)
        subprocess.run([python, "-m", "pip", "install", "--quiet", "-r", asked], check=True)
        asked.rename(made_of)
    return python


def in_environment(
    python: Path, *arguments: str | Path, limits: Limits, flags: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run `corpus.compile` within limits of time and memory."""

    def limit() -> None:
        # Of the processor, as others may use the machine beside.
        resource.setrlimit(resource.RLIMIT_CPU, (limits.seconds, limits.seconds))
        resource.setrlimit(resource.RLIMIT_DATA, (limits.memory, limits.memory))

    return subprocess.run(
        [python, "-m", "corpus.compile", *arguments],
        cwd=HERE,
        env=os.environ | VARIABLES | {"XLA_FLAGS": flags},
        capture_output=True,
        text=True,
        check=False,
        timeout=4 * limits.seconds,
        preexec_fn=limit,
    )


def compile_apart(
    wanted: Wanted, family: str, python: Path, folder: Path, limits: Limits
) -> dict[str, Any]:
    """Compile a program in a process of its own, and keep what memhouse reads of its dump."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    told = folder / "facts.json"
    asked = (family, wanted.name, wanted.device, told)
    flags = f"--xla_dump_to={folder} --xla_dump_hlo_as_text --xla_dump_hlo_as_proto"
    try:
        done = in_environment(python, *asked, limits=limits, flags=flags)
        error = (done.stderr.strip().splitlines() or [f"status {done.returncode}"])[-1]
    except subprocess.TimeoutExpired:
        error = f"took more than {4 * limits.seconds} s"
    facts = json.loads(told.read_text()) if told.exists() else {"error": error[:500]}
    own = re.compile(rf"module_(\d+)\.{facts.get('module', '')}\.")
    numbers = {path: int(match[1]) for path in folder.iterdir() if (match := own.match(path.name))}
    # A framework that compiles as it runs compiles its first steps otherwise.
    last = max(numbers.values(), default=0)
    for path in list(folder.iterdir()):
        if path.is_dir():
            shutil.rmtree(path)
        elif not KEPT.search(path.name) or numbers.get(path) != last:
            path.unlink()
    return facts


def list_programs(
    environment: str, python: Path, families: Sequence[str], limits: Limits
) -> Iterator[tuple[str, Wanted]]:
    """The programs of an environment and their families, once for each device."""
    # Packages print what they miss while they are imported.
    said = in_environment(python, "--list", *families, limits=limits).stdout
    for family, programs in json.loads(said.splitlines()[-1]).items():
        if isinstance(programs, str):
            print(f"{environment} {family}: {programs}", flush=True)
            continue
        for name, about in programs.items():
            if environment in about["environments"]:
                for device in about["devices"]:
                    yield family, Wanted(environment, device, name)


def compile_all(given: argparse.Namespace) -> Iterator[Wanted]:
    """Compile all programs that were asked for and are not compiled yet, and give each."""
    limits = Limits(given.seconds, int(given.memory * GIB))
    for environment in given.venv:
        python = python_of(given.out, environment, given.newest)
        for family, wanted in list_programs(environment, python, ENVIRONMENTS[environment], limits):
            if wanted.device not in given.device or (given.only and wanted.name not in given.only):
                continue
            kept = facts_of(given.out, wanted)
            if given.again or not kept.exists():
                folder = dump_of(given.out, wanted).resolve()
                facts = compile_apart(wanted, family, python, folder, limits)
                kept.parent.mkdir(parents=True, exist_ok=True)
                kept.write_text(json.dumps(facts, indent=1) + "\n")
            yield wanted


def compiled(given: argparse.Namespace) -> Iterator[Wanted]:
    """All programs that were asked for and are compiled."""
    for path in sorted((given.out / "facts").glob("*/*.json")):
        environment, _, device = path.parent.name.partition("-")
        is_asked = not given.only or path.stem in given.only
        if environment in given.venv and device in given.device and is_asked:
            yield Wanted(environment, device, path.stem)


def dump_of(out: Path, wanted: Wanted) -> Path:
    """The folder of a program's dump."""
    return out / "dumps" / wanted.run / wanted.name


def facts_of(out: Path, wanted: Wanted) -> Path:
    """The file of what is known of a program: its arguments, and JAX's totals."""
    return out / "facts" / wanted.run / f"{wanted.name}.json"


# What memhouse says of a program, beside what is known of it.

_COUNTS = """
    SELECT
        (SELECT COUNT(*) FROM instructions) AS instructions,
        (SELECT COUNT(DISTINCT module_id) FROM module_memory) AS modules
"""
_FIGURES = """
    SELECT
        SUM(argument_bytes)::BIGINT AS argument,
        SUM(output_bytes)::BIGINT AS output,
        SUM(alias_bytes)::BIGINT AS alias,
        SUM(temp_bytes)::BIGINT AS temp
    FROM peaks
"""
_OWNERS = """
    SELECT
        COALESCE(SUM(counted_bytes) FILTER (
            WHERE origin_rule IS NULL AND op_name IS NULL AND category <> 'constant'
                AND element_type IS NOT NULL
        ) / SUM(counted_bytes), 0) AS nobody,
        COALESCE(SUM(counted_bytes) FILTER (
            WHERE category NOT IN ('argument', 'constant')
            AND REGEXP_MATCHES(source_file, '/(site|dist)-packages/')
        ) / SUM(counted_bytes) FILTER (
            WHERE category NOT IN ('argument', 'constant')
        ), 0) AS library
    FROM peak_buffers
    WHERE memory_space = 0
"""
_ROLES = """
    SELECT DISTINCT
        entry_shapes.argument_name,
        entry_shapes.parameter_number,
        "values".role
    FROM entry_shapes
    INNER JOIN allocations
        ON allocations.module_id = entry_shapes.module_id
            AND allocations.parameter_number = entry_shapes.parameter_number
    INNER JOIN "values"
        ON "values".module_id = allocations.module_id
            AND "values".value_id = allocations.value_id
    WHERE NOT entry_shapes.is_output
"""
OWNERLESS, LIBRARY, ROLES = 0.001, 0.001, 0.001
# Lines on what is wrong with one program.
SHOWN = 20
HEAD = (
    "program", "run", "instructions", "not read", "breaches", "totals", "no owner", "library",
    "other role", "compile s", "ingest s",
)  # fmt: skip


def rows(warehouse: memhouse.Warehouse, query: str) -> list[dict[str, Any]]:
    """The rows of a query."""
    found: list[dict[str, Any]] = warehouse.sql(query).arrow().to_pylist()
    return found


def differences(wanted: Wanted, facts: dict[str, Any], figures: dict[str, Any]) -> str:
    """The totals that are not those of JAX; of a TPU, temps are counted otherwise."""
    said = facts["analysis"] or {}
    kinds = [kind for kind in said if kind != "temp" or wanted.device in ("cpu", "h100")]
    return ", ".join(f"{k} {figures[k]} not {said[k]}" for k in kinds if figures[k] != said[k])


def other_roles(facts: dict[str, Any], arguments: list[dict[str, Any]]) -> dict[str, int]:
    """The bytes of arguments by `the role they have: the role that memhouse gives`.

    JAX leaves out the arguments that nothing reads, so that its arguments go by name.
    """
    role_of = {row["argument_name"]: row["role"] for row in arguments}
    role_of |= {row["parameter_number"]: row["role"] for row in arguments}
    wrong: dict[str, int] = {}
    for argument in facts["arguments"]:
        role = role_of.get(argument["argument"])
        if argument["role"] and role and role != argument["role"]:
            which = f"{argument['role']}: {role}"
            wrong[which] = wrong.get(which, 0) + argument["bytes"]
    return wrong


def share(value: float, limit: float) -> str:
    """A share in percent, marked if it is beyond its limit."""
    return f"{value:.2%}" + (" !" if value > limit else "")


def held(wanted: Wanted, facts: dict[str, Any], folder: Path, details: list[str]) -> list[str]:
    """A program's cells from `instructions` on; what is behind a mark goes to the details."""
    start = time.perf_counter()
    with memhouse.open(":memory:") as warehouse:
        summary = warehouse.ingest(folder)
        seconds = time.perf_counter() - start
        # A note says what is not known although the file was read, such as whose the values are.
        unread = summary.problems + summary.notes
        details += [f"not read: {problem}" for problem in unread]
        breaches = warehouse.verify().rows.table.to_pylist()
        details += [f"breach: {row['check']}: {row['breach']}" for row in breaches]
        (counts,) = rows(warehouse, _COUNTS)
        if counts["modules"] != 1:
            details.append(f"modules with figures: {counts['modules']}, expected 1")
        totals = differences(wanted, facts, rows(warehouse, _FIGURES)[0])
        if totals:
            details.append(f"totals: {totals}")
        (owners,) = rows(warehouse, _OWNERS)
        wrong = other_roles(facts, rows(warehouse, _ROLES))
    arguments = sum(a["bytes"] for a in facts["arguments"] if a["role"]) or 1
    other = sum(wrong.values()) / arguments
    if other > ROLES:
        details += [f"role of {size} bytes is {which}" for which, size in sorted(wrong.items())]
    bad = len(unread) + (counts["modules"] != 1)
    return [
        f"{counts['instructions']:,}",
        f"{bad} !" if bad else "-",
        f"{len(breaches)} !" if breaches else "-",
        "differ !" if totals else "-",
        share(owners["nobody"], OWNERLESS),
        share(owners["library"], LIBRARY),
        share(other, ROLES),
        f"{facts['seconds']:.1f}",
        f"{seconds:.1f}",
    ]


def line(wanted: Wanted, facts: dict[str, Any], folder: Path, details: list[str]) -> list[str]:
    """A program's line, also if it was not compiled, or if memhouse fails on it."""
    start = [wanted.name, wanted.run]
    unknown = ["?"] * (len(HEAD) - 3)
    if "error" in facts:
        details.append(f"not compiled: {facts['error']}")
        return [*start, "not compiled", *unknown]
    try:
        return start + held(wanted, facts, folder, details)
    except Exception as error:
        # The table goes on: an error that nothing caught is what it looks for.
        details.append(f"failed: {type(error).__name__}: {error}")
        return [*start, "failed !", *unknown]


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--venv", nargs="+", choices=ENVIRONMENTS, default=list(ENVIRONMENTS))
    parser.add_argument("--device", nargs="+", choices=DEVICES, default=DEVICES)
    parser.add_argument("--only", nargs="+", metavar="NAME")
    parser.add_argument("--newest", action="store_true", help="not the pinned packages")
    parser.add_argument("--compiled", action="store_true", help="only what is compiled already")
    parser.add_argument("--again", action="store_true", help="compile also what is compiled")
    parser.add_argument("--seconds", type=int, default=900, help="of the processor, for a program")
    parser.add_argument("--memory", type=float, default=16, help="for a program, in GiB")
    given = parser.parse_args()
    print("| " + " | ".join(HEAD) + " |")
    print("| --- | --- |" + " ---: |" * (len(HEAD) - 2), flush=True)
    is_beyond = False
    for wanted in compiled(given) if given.compiled else compile_all(given):
        details: list[str] = []
        facts = json.loads(facts_of(given.out, wanted).read_text())
        cells = line(wanted, facts, dump_of(given.out, wanted), details)
        is_beyond |= any(cell.endswith("!") for cell in cells)
        print("| " + " | ".join(cells) + " |", flush=True)
        for detail in details[:SHOWN]:
            print(f"    {detail[:400]}", flush=True)
    sys.exit(is_beyond)


if __name__ == "__main__":
    main()
