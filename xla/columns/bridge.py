"""Between columns and the plain objects, in both directions, until all rules are plain."""

from itertools import pairwise

from ..program import (
    NO_METADATA,
    Alias,
    EntryShape,
    Header,
    KernelPart,
    Metadata,
    NotUnderstood,
    Program,
    ScopedMemory,
    StackFrame,
    Unread,
)
from .parts import HloText
from .program import NumberedProgram, parse_aliases


def plain_program(numbered: NumberedProgram, hlo: HloText | None = None) -> Program:
    """The plain form of a program; the same object if asked again."""
    cache = numbered.__dict__
    key = "_plain_with_text" if hlo is not None else "_plain"
    if key not in cache:
        cache[key] = _plain_program(numbered, hlo)
    program: Program = cache[key]
    return program


def _plain_program(numbered: NumberedProgram, hlo: HloText | None) -> Program:
    program = Program()
    program.computation_names = list(numbered.computation_names)
    program.first, program.stop = numbered.first.tolist(), numbered.stop.tolist()
    program.root = numbered.root.tolist()
    program.entry = int(numbered.entries[0])
    program.names = numbered.names.to_pylist()
    program.row_of = {name: row for row, name in enumerate(program.names)}
    program.lines = numbered.lines.tolist()
    program.opcode = _texts(numbered.opcode)
    program.shape = _texts(numbered.shape)
    program.computation = numbered.computation.tolist()
    starts, operands = numbered.operand_start.tolist(), numbered.operands.tolist()
    program.operands = [tuple(operands[a:b]) for a, b in pairwise(starts)]
    program.parameter_number = numbered.parameter_number.tolist()
    program.tuple_index = numbered.tuple_index.tolist()
    for row, attribute, computation in zip(
        numbered.call_row.tolist(),
        _texts(numbered.call_attribute),
        numbered.call_computation.tolist(),
        strict=True,
    ):
        program.calls.setdefault(row, []).append((attribute, computation))
    program.attributes = _present(numbered.attributes)
    for row, text in _present(numbered.operand_aliasing).items():
        program.operand_aliasing[row] = [Alias(*alias) for alias in parse_aliases(text)]
    program.fusion_kind = _present(numbered.fusion_kind)
    program.custom_call_target = _present(numbered.custom_call_target)
    program.aliases = [Alias(*alias) for alias in numbered.input_output_alias]
    for row, predecessor in numbered.control.tolist():
        program.control_predecessors.setdefault(row, []).append(predecessor)
    if numbered.unread is not None:
        program.unread.append(Unread(*numbered.unread))
    program.metadata = [NO_METADATA] * len(program)
    if hlo is not None:
        _add_text(program, hlo)
    return program


def _add_text(program: Program, hlo: HloText) -> None:
    header = hlo.header
    program.header = Header(**{name: header[name] for name in Header._fields if name in header})
    columns = [hlo.instructions[name].to_pylist() for name in Metadata._fields]
    program.metadata = [Metadata(*values) for values in zip(*columns, strict=True)]
    names = ("scoped_bytes", "scoped_space", "used_scoped_bytes")
    columns = [hlo.instructions[name].to_pylist() for name in names]
    for row, values in enumerate(zip(*columns, strict=True)):
        if values != (None, None, None):
            program.scoped[row] = ScopedMemory(*values)
    names = StackFrame._fields
    for frame in hlo.stack_frames.to_pylist():
        program.frames[frame["stack_frame_id"]] = StackFrame(*(frame.get(n) for n in names))
    if hlo.entry_shapes is not None:
        names = EntryShape._fields
        program.entry_shapes = [
            EntryShape(*(row.get(name) for name in names)) for row in hlo.entry_shapes.to_pylist()
        ]
    for part in hlo.kernels.to_pylist():
        fields = {name: part[name] for name in KernelPart._fields if name != "row"}
        program.kernels.append(KernelPart(program.row_of[part["instruction"]], **fields))
    attributes = hlo.attributes()
    for entry in attributes.aliasing_operands.to_pylist():
        program.aliasing_lists[entry["row"]] = entry["lists"]
    for fact in attributes.loop_facts.to_pylist():
        if fact["trip_count"] is not None:
            program.trip_counts[fact["row"]] = fact["trip_count"]
        if fact["integer"] is not None:
            program.integers[fact["row"]] = fact["integer"]
        if fact["is_less_than"]:
            program.less_than.add(fact["row"])
    program.has_dma_priority = attributes.has_dma_priority
    program.is_gpu = attributes.is_gpu
    program.not_understood = [NotUnderstood(*each) for each in hlo.not_understood]
    program.unread = [Unread(*each) for each in hlo.unread] or program.unread


def _texts(codes: object) -> list[str]:
    texts = [*codes.texts, ""]  # type: ignore[attr-defined]
    return [texts[code] for code in codes.codes.tolist()]  # type: ignore[attr-defined]


def _present(codes: object) -> dict[int, str]:
    return {row: text for row, text in enumerate(_texts(codes)) if text}


__all__ = ["plain_program"]
