"""The program of a stored module, as ingest had it when it worked out liveness and owners."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..schema.stores.base import Store
from ..xla.program import NumberedProgram, program_of
from .catalogue import statement


def stored_program(store: Store, module_id: int) -> NumberedProgram | None:
    """The program of a module; its lines count the instructions.

    None without HLO text, and of a module that a memhouse before schema version 3 stored: its dump
    must be ingested again. Raises DumpError if the rows make no program.
    """
    instructions = store.rows(statement("program_instructions"), [module_id])
    if not len(instructions) or instructions["is_root"].null_count:
        return None
    # Computations stand in the text's order, and so do the instructions.
    computations = pa.table({"computation": pc.unique(instructions["computation"])})
    (header,) = store.rows(statement("program_header"), [module_id]).to_pylist()
    is_entry = pc.equal(computations["computation"], header["entry"])
    operands = store.rows(statement("program_operands"), [module_id])
    calls = store.rows(
        "SELECT instruction_id, attribute, computation FROM calls WHERE module_id = $1", [module_id]
    )
    return program_of(
        instructions,
        np.arange(1, len(instructions) + 1),
        computations.append_column("is_entry", is_entry),
        operands["instruction_id"].to_numpy(),
        operands["operand_instruction_id"].to_numpy().astype(np.int64),
        calls,
        calls["instruction_id"].to_numpy().astype(np.int64),
        header["input_output_alias"],
    )
