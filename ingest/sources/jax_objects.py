"""What a user's object of JAX is: told by the module of its type, so jax is never imported."""

from typing import Any

from ...schema.errors import UsageError

_WHAT = "what"


def is_of_jax(given: object) -> bool:
    """Whether jax or jaxlib made the object."""
    return any(
        kind.__module__.partition(".")[0] in ("jax", "jaxlib") for kind in type(given).__mro__
    )


def is_compiled(given: object) -> bool:
    """Whether it is what `lowered.compile()` gives."""
    return is_of_jax(given) and hasattr(given, "runtime_executable")


def is_lowered(given: object) -> bool:
    """Whether it is what `jax.jit(f).lower(…)` gives."""
    return is_of_jax(given) and hasattr(given, "compile") and hasattr(given, "compiler_ir")


def to_lowered(given: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """The program lowered, from a jitted function and its arguments. Raises UsageError."""
    if is_lowered(given):
        if arguments or named:
            raise UsageError("it is lowered already: leave its arguments out", _WHAT)
        return given
    if is_compiled(given):
        raise UsageError(
            "it is compiled already: read it with memhouse.read(compiled), or record the lowered"
            " program: jax.jit(f).lower(...)",
            _WHAT,
        )
    if is_of_jax(given) and callable(getattr(given, "lower", None)):
        return given.lower(*arguments, **named)
    if callable(given):
        raise UsageError("only a jitted function can be recorded: use jax.jit(f)", _WHAT)
    raise UsageError(
        f"expected a jitted function of JAX or jax.jit(f).lower(...), found {_kind(given)}", _WHAT
    )


def cannot_be_read(given: object) -> UsageError:
    """The error for an object that holds no compiled program."""
    if is_of_jax(given) and (is_lowered(given) or callable(getattr(given, "lower", None))):
        return UsageError(
            "it is not compiled yet: use memhouse.record, which compiles it", "program"
        )
    return UsageError(
        "expected a compiled program of JAX, HLO text (compiled.as_text()), the bytes of an"
        f" HloProto, or a file's path, found {_kind(given)}",
        "program",
    )


def _kind(given: object) -> str:
    return "None" if given is None else f"an object of type {type(given).__name__}"
