"""Compiles a lowered program of JAX with XLA's dump flags, and finds what XLA dumped of it."""

import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any

from .dump_folder import find_dumps, is_wanted
from .dumped_program import DumpedProgram
from .files import open_source

_DUMP_FLAG = re.compile(rb"^(?:--)?xla_dump_.*\n?", re.MULTILINE)


@dataclass(frozen=True)
class Dumped:
    """What XLA dumped, and the compiler's error if it failed; notes are for the user."""

    programs: list[DumpedProgram]
    problems: list[str]
    error: Exception | None


def compile_and_dump(lowered: Any, folder: Path) -> Dumped:
    """Compile a program, which dumps into the folder."""
    error = None
    try:
        with _without_cache():
            lowered.compile(compiler_options=dump_options(folder, _name(lowered)))
    except Exception as raised:  # The caller stores what was dumped, then raises it.
        error = raised
    forget_folder(folder)
    problems: list[str] = []
    files = open_source(folder, is_wanted, ExitStack(), problems.append)
    found = find_dumps(files, lambda file, why: problems.append(f"{file.name}: {why}"))
    return Dumped([_renamed(program) for program in found], problems, error)


def forget_folder(folder: Path) -> None:
    """Take the dump's own flags out of the files of flags: each dump has another folder.

    Without that the same program's dump of another day would be other dumps.
    """
    for path in folder.rglob("*"):
        if path.suffix in (".debug_options", ".flagfile"):
            path.write_bytes(_DUMP_FLAG.sub(b"", path.read_bytes()))


def dump_options(folder: Path, module: str | None) -> dict[str, Any]:
    """XLA's flags for one compilation, which dumps a module, or all; the user's hold besides."""
    options = {
        "xla_dump_to": str(folder),
        "xla_dump_hlo_as_text": True,
        # Up to JAX 0.7 the texts lack the Python stacks.
        "xla_dump_hlo_as_proto": True,
        # `memhouse record` sets this one, and here no other process dumps beside.
        "xla_dump_include_timestamp": False,
    }
    if module:
        # Not the programs that the compiler tries out on the way.
        options["xla_dump_hlo_module_re"] = f"^{re.escape(module)}$"
    return options


def _name(lowered: Any) -> str | None:
    try:
        return str(lowered.compiler_ir().operation.attributes["sym_name"].value)
    except (AttributeError, KeyError, NotImplementedError):
        # Not every lowering has IR with a name; then all programs are dumped.
        return None


@contextmanager
def _without_cache() -> Iterator[None]:
    """Compile for certain: a program from JAX's cache on disk dumps no buffer assignment."""
    # The caller holds an object of JAX, so jax is there; memhouse itself does without.
    jax: Any = import_module("jax")
    if not jax.config.jax_compilation_cache_dir or not jax.config.jax_enable_compilation_cache:
        yield
        return
    cache: Any = import_module("jax.experimental.compilation_cache.compilation_cache")
    # JAX looks once whether the cache is on, unless it is reset.
    jax.config.update("jax_enable_compilation_cache", False)
    cache.reset_cache()
    try:
        yield
    finally:
        jax.config.update("jax_enable_compilation_cache", True)
        cache.reset_cache()


def _renamed(program: DumpedProgram) -> DumpedProgram:
    """The program under a name that holds in every process: there, modules count anew.

    Programs of one name are told apart by their content.
    """
    identified = program.fingerprint()
    module_name = identified.module_name
    name = f"{module_name}.{identified.module_id:016x}"
    key = replace(program.key, workload=".", module_name=module_name, number=None, name=name)
    return replace(program, key=key)
