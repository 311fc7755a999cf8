"""Reader of the four tables of Python frames after the header of newer HLO text."""

import pyarrow as pa
import pyarrow.compute as pc

from ...xla.errors import DumpError
from ...xla.parts import NotUnderstoods
from .lines import Lines
from .newer_text import newer_words

FRAME_TABLES = ("FileNames", "FunctionNames", "FileLocations", "StackFrames")

_NEWER = r"(?P<newer>(?: [a-z_]+=[^ {}]+)*)"
_NAME = r'^(?P<id>\d+) "(?P<name>.*)"$'
_LOCATION = (
    r"^(?P<id>\d+) \{file_name_id=(?P<file>\d+) function_name_id=(?P<function>\d+)"
    r" line=(?P<line>\d+)(?: end_line=(?P<end_line>\d+))?"
    r"(?: column=(?P<column_start>\d+))?(?: end_column=(?P<column_end>\d+))?"
    rf"{_NEWER}\}}$"
)
_FRAME = (
    r"^(?P<id>\d+) \{file_location_id=(?P<location>\d+)(?: parent_frame_id=(?P<parent>\d+))?"
    rf"{_NEWER}\}}$"
)


def read_stack_frames(lines: Lines) -> tuple[pa.Table, NotUnderstoods]:
    """The frames as in the warehouse's table, in order of their ids, and what is not known.

    `lines` are the four headings and their rows; empty lines give an empty table.
    Raises DumpError.
    """
    tables = _tables(lines)
    files = _named(tables["FileNames"])
    functions = _named(tables["FunctionNames"])
    locations, newer = _locations(tables["FileLocations"])
    frames = tables["StackFrames"]
    found = frames.extract(_FRAME, "a stack frame")
    ids = frames.integers(found["id"])
    at = pc.index_in(frames.integers(found["location"]), value_set=locations["id"])
    if at.null_count:
        frames.refuse(pc.is_null(at).to_numpy(zero_copy_only=False), "no such file location")
    location = {name: column.take(at) for name, column in locations.items()}

    def name_of(names: dict[str, pa.Array], numbers: pa.Array) -> pa.Array:
        return names["name"].take(pc.index_in(numbers, value_set=names["id"]))

    newer += _newer(frames, found["newer"])
    table = pa.table(
        {
            "stack_frame_id": ids,
            "parent_frame_id": _parents(frames.integers(found["parent"]), ids),
            "file": name_of(files, location["file"]),
            "function": name_of(functions, location["function"]),
            "line": location["line"],
            "end_line": location["end_line"],
            "column_start": location["column_start"],
            "column_end": location["column_end"],
        }
    )
    return table, newer


def _newer(lines: Lines, texts: pa.Array) -> NotUnderstoods:
    """The attributes of a frame or a location that are not known."""
    names = pc.replace_substring_regex(texts, pattern="=[^ ]*", replacement="")
    return newer_words(lines, pc.utf8_ltrim(names, " "), "attribute of a stack frame")


def with_sources(instructions: pa.Table, frames: pa.Table) -> pa.Table:
    """Take file and line from the innermost frame if the metadata has none."""
    at = pc.index_in(
        instructions["stack_frame_id"], value_set=frames["stack_frame_id"].combine_chunks()
    )
    for column, of_frame in (("source_file", "file"), ("source_line", "line")):
        filled = pc.coalesce(instructions[column], frames[of_frame].take(at))
        at_column = instructions.schema.get_field_index(column)
        instructions = instructions.set_column(at_column, column, filled)
    return instructions


def _tables(lines: Lines) -> dict[str, Lines]:
    """The rows under each heading."""
    at = {name: lines.equal(name).nonzero()[0] for name in FRAME_TABLES}
    if not len(lines):
        return dict.fromkeys(FRAME_TABLES, lines)
    missing = [name for name in FRAME_TABLES if len(at[name]) != 1]
    if missing:
        raise DumpError(
            f"the stack frame table {missing[0]} is missing or repeated", int(lines.numbers[0])
        )
    starts = sorted((int(found[0]), name) for name, found in at.items())
    stops = [start for start, _ in starts[1:]] + [len(lines)]
    return {
        name: lines.between(start + 1, stop)
        for (start, name), stop in zip(starts, stops, strict=True)
    }


def _named(lines: Lines) -> dict[str, pa.Array]:
    found = lines.extract(_NAME, "a number and a quoted name")
    return {"id": lines.integers(found["id"]), "name": found["name"]}


def _locations(lines: Lines) -> tuple[dict[str, pa.Array], NotUnderstoods]:
    found = lines.extract(_LOCATION, "a file location")
    newer = _newer(lines, found.pop("newer"))
    return {name: lines.integers(texts) for name, texts in found.items()}, newer


def _parents(parents: pa.Int32Array, ids: pa.Int32Array) -> pa.Int32Array:
    """Parent ids, null at a root.

    Some versions of XLA print ids one too high: 1 means a root, and frame 1 seems to be its
    own parent (`tpu/llama-v5e`). Other versions print 0 for a root. Frame 1 shows which.
    """
    first = parents.filter(pc.equal(ids, 1))
    if len(first) and first[0].as_py() == 1:
        parents = pc.subtract(parents, pa.scalar(1, pa.int32()))
    null = pa.scalar(None, pa.int32())
    return pc.if_else(pc.equal(parents, 0), null, parents)
