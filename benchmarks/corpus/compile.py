"""Compiles one program of the corpus in this process; `corpus_table.py` starts it.

python -m corpus.compile --list FAMILY ...           the programs, as JSON
python -m corpus.compile FAMILY PROGRAM DEVICE FACTS XLA dumps by XLA_FLAGS; facts as JSON
"""

import importlib
import json
import re
import sys
import time
from pathlib import Path
from typing import Any

from .registry import PROGRAMS, Case, Place, Ran, role_of

ANALYSIS = ("argument", "output", "alias", "temp")


def list_programs(families: list[str]) -> dict[str, Any]:
    """By family: its programs with their devices, or why it cannot be imported."""
    listed: dict[str, Any] = {}
    for family in families:
        before = set(PROGRAMS)
        try:
            importlib.import_module(f"corpus.{family}")
        except Exception as error:
            # Whatever a package raises while it is imported is what to tell.
            listed[family] = f"{type(error).__name__}: {error}"
            continue
        listed[family] = {
            name: {"devices": PROGRAMS[name].devices, "environments": PROGRAMS[name].environments}
            for name in PROGRAMS
            if name not in before
        }
    return listed


def compile_jax(case: Case, place: Place) -> dict[str, Any]:
    """Compile a case ahead of time: its module's name, its arguments, and XLA's totals."""
    import jax

    # So that dumps name lines as corpus/linen.py:82, wherever the checkout is.
    here = re.escape(str(Path(__file__).resolve().parent.parent))
    jax.config.update("jax_hlo_source_file_canonicalization_regex", f"{here}/")
    names = list(case.arguments)
    shapes = {name: place.put(tree) for name, tree in case.arguments.items()}
    leaves, _ = jax.tree_util.tree_flatten_with_path(tuple(shapes.values()))
    arguments = []
    for path, leaf in leaves:
        name = names[path[0].idx] + jax.tree_util.keystr(path[1:])
        size = leaf.size * leaf.dtype.itemsize
        arguments.append({"argument": name, "role": role_of(name, case.roles), "bytes": size})
    donated = tuple(names.index(name) for name in case.donated)
    function = jax.jit(case.function, donate_argnums=donated, **case.options)
    lowered = function.lower(*shapes.values())
    start = time.perf_counter()
    compiled = lowered.compile()
    seconds = time.perf_counter() - start
    analysis = compiled.memory_analysis()
    return {
        "module": f"jit_{case.function.__name__}",
        "seconds": seconds,
        "arguments": arguments,
        "analysis": {kind: getattr(analysis, f"{kind}_size_in_bytes") for kind in ANALYSIS}
        if analysis
        else None,
    }


def run(case: Ran) -> dict[str, Any]:
    """Run a case of a framework that compiles as it runs: the same, without XLA's totals."""
    start = time.perf_counter()
    case.run()
    seconds = time.perf_counter() - start
    return {
        "module": case.module,
        "seconds": seconds,
        "arguments": case.arguments,
        "analysis": None,
    }


def main() -> None:
    """Read the command line."""
    if sys.argv[1] == "--list":
        print(json.dumps(list_programs(sys.argv[2:])))
        return
    family, name, device, facts = sys.argv[1:]
    importlib.import_module(f"corpus.{family}")
    place = Place(device)
    case = PROGRAMS[name].make(place)
    found = run(case) if isinstance(case, Ran) else compile_jax(case, place)
    Path(facts).write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
