"""The plain Program of HLO text as the columns of the old rules, until all rules are plain."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from ...ingest.readers import hlo_text
from ...ingest.readers.lines import Lines
from ..program import NONE, Program
from .bridge_p import hlo_tables
from .parts import HloText, Unread
from .program import Alias, Codes, Ints, NumberedProgram

_DEFINITION_COLUMNS = [
    *("instruction", "opcode", "shape", "op_name", "source_file", "source_line"),
    *("stack_frame_id", "custom_call_target"),
    *("scoped_bytes", "scoped_space", "used_scoped_bytes"),
]


def read_hlo_text(lines: Lines) -> HloText:
    """Read HLO text into columns."""
    return hlo_tables(hlo_text.read_hlo_text(lines))


def definition_table(program: Program) -> pa.Table:
    """The definitions of used values, as in `UsedValues.definitions`."""
    return hlo_tables(program).instructions.select(_DEFINITION_COLUMNS)


def numbered_program(program: Program) -> NumberedProgram:
    """The program as columns of numbers."""
    program.check_computations()
    count = range(len(program))
    calls = [(row, *call) for row, pairs in sorted(program.calls.items()) for call in pairs]
    control = [(r, p) for r, each in program.control_predecessors.items() for p in each]
    return NumberedProgram(
        names=_texts(program.names),
        lines=_ints(program.lines),
        opcode=_codes(program.opcode),
        shape=_codes(program.shape),
        computation=_ints(program.computation),
        computation_names=program.computation_names,
        entries=_ints([program.entry]),
        program_of_computation=_ints([0] * len(program.computation_names)),
        first=_ints(program.first),
        stop=_ints(program.stop),
        root=_ints(program.root),
        operand_start=np.cumsum(_ints([0, *map(len, program.operands)])),
        operands=_ints([operand for each in program.operands for operand in each]),
        call_row=_ints([row for row, _, _ in calls]),
        call_attribute=_codes([attribute for _, attribute, _ in calls]),
        call_computation=_ints([computation for _, _, computation in calls]),
        parameter_number=_ints(program.parameter_number),
        tuple_index=_ints(program.tuple_index),
        fusion_kind=_codes([program.fusion_kind.get(row) for row in count]),
        attributes=_codes([program.attributes.get(row) for row in count]),
        custom_call_target=_codes([program.custom_call_target.get(row) for row in count]),
        input_output_alias=[Alias(*alias) for alias in program.aliases],
        alias_entry=_ints([program.entry] * len(program.aliases)),
        control=np.unique(np.array(control, np.int64).reshape(-1, 2), axis=0),
        unread=Unread(*program.unread[0]) if program.unread else None,
    )


def _ints(numbers: list[int]) -> np.ndarray:
    return np.array(numbers, np.int64)


def _codes(texts: list) -> Codes:
    encoded = _texts(texts).dictionary_encode()
    codes = encoded.indices.fill_null(NONE).to_numpy().astype(np.int64)
    return Codes(codes, encoded.dictionary.to_pylist())


def _ints(numbers: Sequence[int]) -> Ints:
    return np.array(numbers, np.int64)


def _codes(texts: Sequence[str | None]) -> Codes:
    encoded = _texts(texts).dictionary_encode()
    codes = encoded.indices.fill_null(NONE).to_numpy().astype(np.int64)
    return Codes(codes, encoded.dictionary.to_pylist())


def _texts(texts: Sequence[str | None]) -> pa.LargeStringArray:
    return pa.array(texts, pa.large_string())
