"""The program of a stored module."""

from ..queries.catalogue import statement
from ..schema.store import Store
from ..xla.program import Program
from ..xla.stored_program import program_from_rows

_RELATIONS = (
    *("instructions", "computations", "operands"),
    *("calls", "control_dependencies", "donations"),
)


def stored_program(store: Store, module_id: int) -> Program | None:
    """The program of a module; its lines count the instructions. None without HLO text.

    Raises DumpError if the rows make no program.
    """
    rows = {
        relation: store.rows(statement(f"program.{relation}"), [module_id]).to_pydict()
        for relation in _RELATIONS
    }
    if not rows["computations"]["computation"]:
        return None
    return program_from_rows(rows)
