"""What a recorded command did not compile, and how to make it."""

from collections.abc import Collection, Mapping
from pathlib import Path

_COMPILE_THEM = "JAX_ENABLE_COMPILATION_CACHE=false makes JAX compile them"
_NAMED = 3


def cached_note(
    cached: Mapping[Path, set[str]],
    environment: Mapping[str, str],
    platforms: Collection[str | None],
) -> list[str]:
    """What of the programs came from JAX's persistent compilation cache, in one line if any.

    platforms: of the programs that were compiled.
    """
    names = _names(cached)
    if names:
        listed = ", ".join(names[:_NAMED]) + (", …" if len(names) > _NAMED else "")
        return [
            f"not in the run, because JAX took them from its compilation cache: {listed} "
            f"({len(names)}); {_COMPILE_THEM}"
        ]
    # On CPU each such program leaves a file; that this holds elsewhere was not tried.
    if _uses_cache(environment) and set(platforms) != {"cpu"}:
        return [
            "if JAX took programs from JAX_COMPILATION_CACHE_DIR, they are not in the run; "
            + _COMPILE_THEM
        ]
    return []


def why_nothing(
    status: int,
    cached: Mapping[Path, set[str]],
    environment: Mapping[str, str],
    only: str | None,
    packages: Mapping[str, str] | None,
) -> str:
    """Why nothing was compiled, most probably.

    packages: the versions that the command's Python has, None if it was not found.
    """
    said = "nothing to ingest: "
    if cached:
        number = len(_names(cached))
        programs = "the program" if number == 1 else f"all {number} programs"
        return f"{said}JAX took {programs} from its compilation cache; {_COMPILE_THEM}"
    if only is not None:
        return f"{said}no program was compiled whose name matches --only {only}"
    if status:
        return f"{said}the command ended with status {status} before XLA compiled a program"
    if _uses_cache(environment):
        return (
            f"{said}XLA compiled no program; if they came from JAX_COMPILATION_CACHE_DIR, "
            f"{_COMPILE_THEM}"
        )
    if packages is not None and not packages:
        return (
            f"{said}XLA compiled no program, and the command's Python has no jax, torch_xla "
            "or tensorflow"
        )
    return f"{said}XLA compiled no program, or the command sets XLA_FLAGS itself"


def _uses_cache(environment: Mapping[str, str]) -> bool:
    is_on = environment.get("JAX_ENABLE_COMPILATION_CACHE", "true").lower() not in _OFF
    return is_on and bool(environment.get("JAX_COMPILATION_CACHE_DIR"))


_OFF = ("0", "false", "f", "no", "n", "off")


def _names(cached: Mapping[Path, set[str]]) -> list[str]:
    """The modules' names, in the order of their numbers."""
    stems = sorted({stem for stems in cached.values() for stem in stems})
    return list(dict.fromkeys(stem.partition(".")[2] for stem in stems))
