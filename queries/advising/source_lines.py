"""The lines of a program that a user can edit."""

from ..catalogue import statement
from .asked_program import Program


def line_of(program: Program, instruction_id: int) -> str | None:
    """The line that an instruction comes from, as file:line."""
    rows = program.rows(
        "SELECT source_file || ':' || source_line AS source FROM instructions"
        " WHERE module_id = $1 AND instruction_id = $2",
        [instruction_id],
    ).to_pylist()
    return rows[0]["source"] if rows else None


def function_line(program: Program) -> str | None:
    """The first line of the compiled function that computes something, as file:line.

    The line with `jax.jit` is not recorded, but it is close.
    """
    rows = program.rows(statement("advise_function_line")).to_pylist()
    return f"{rows[0]['file']}:{rows[0]['line']}" if rows else None
