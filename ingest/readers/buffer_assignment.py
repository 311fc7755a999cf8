"""Reader of `BufferAssignment:`: the allocations and their values."""

from functools import reduce

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ...xla.columns.parts import BufferAssignment, NotUnderstoods
from ...xla.errors import LARGEST_SIZE, DumpError
from ...xla.shapes import ELEMENT_BYTES, shape_columns
from .lines import Lines, Positions, as_numpy, divided, lines_of, slices
from .newer_text import before_newer_sections, newer_element_types, newer_words, resembles

HEADING = "BufferAssignment:"
# As BufferAllocation::ToShortString prints it, with an address only in 2020 (seed 004).
_ALLOCATION = (
    r"^allocation (?P<allocation_index>\d+): (?:0x(?P<address>[0-9a-f]+), )?"
    r"size (?P<size_bytes>\d+)(?:, color (?P<memory_space>\d+))?(?:, page \d+)?"
    r"(?P<parameter>, parameter (?P<parameter_number>\d+), shape \|(?P<parameter_shape>[^|]*)\|"
    r" at ShapeIndex (?P<parameter_shape_index>\{[\d,]*\}))?"
    r"(?P<output>, output shape is \|(?P<output_shape>[^|]*)\|)?"
    r"(?P<constant>, constant)?(?P<thread_local>, thread-local)?"
    r"(?P<live_out>, maybe-live-out)?(?P<temp>, preallocated-temp)?:$"
)
# ` (phi)` marks a merged value of a loop or conditional. The seeds have none, but every program
# with a `while` has some (`tpu/llama-v5e`), and its figures depend on them. Each pattern has at
# most four groups, and each byte decides how to go on: such a pattern RE2 matches in one pass.
_VALUE_NAME = (
    r"^<(?P<value_id>\d+) (?P<instruction>[^ {>]+)(?P<shape_index>\{[\d,]*\})?"
    r" (?P<phi_space>(?:\(phi\) )?@\d+)>$"
)
_PLACE = (
    r"^ \(size=(?P<size_bytes>\d+),offset=(?P<offset_bytes>\d+)"
    r"(?P<newer>(?:,[a-z_]+=[^,()]*)*)\)$"
)
# The attributes of an allocation, in the order of _ALLOCATION. At least one of the last kinds
# stands in every allocation, and _KINDS decide all figures.
_ATTRIBUTES = (
    r", color \d+",
    r", page \d+",
    r", parameter \d+, shape \|[^|]*\| at ShapeIndex \{[\d,]*\}",
    r", output shape is \|[^|]*\|",
    ", constant",
    ", thread-local",
    ", maybe-live-out",
    ", preallocated-temp",
)
_KINDS = ("parameter", "constant", "thread-local", "maybe-live-out", "preallocated-temp")
_WORDS = (*_KINDS, "color", "page", "output shape is", "ShapeIndex")
_START = r"^(?P<start>allocation \d+: (?:0x[0-9a-f]+, )?size \d+)(?P<rest>, .*):$"
_VALUE_OF_NEWER = r"([a-z0-9_-])[ =](?:\|[^|]*\||[^,|])*"
_NEWER = r"^(?:, [a-z][a-z0-9_-]*(?:[ =](?:\|[^|]*\||[a-z0-9_{}.-]+))*)+$"
# The newest XLA lists values of another color twice: here, and among the values above.
_REUSED = (" reused by buffers of a different color:", "  value: ")


def read_buffer_assignment(section: Lines) -> BufferAssignment:
    """Read the part of a dump that starts with `BufferAssignment:`. Raises DumpError."""
    (found,) = read_buffer_assignments(section, section.starts[:1])
    return found


def read_buffer_assignments(lines: Lines, starts: Positions) -> list[BufferAssignment]:
    """Read such parts of several dumps, which start at these positions of the lines' content.

    Raises DumpError if one of several says what is not known, too.
    """
    bounds = lines.bounds(starts)
    is_headed = lines.where(bounds[:-1]).equal(HEADING)
    if not is_headed.all():
        raise DumpError(
            f"not a buffer assignment: expected '{HEADING}' in the first line",
            int(lines.numbers[bounds[np.argmin(is_headed)]]),
        )
    body = lines.runs(bounds[:-1] + 1, bounds[1:])
    is_allocation = body.starting("allocation ")
    is_value = body.starting(" value: ")
    is_known = is_allocation | is_value
    for reused in _REUSED:
        is_known |= body.starting(reused)
    newer: NotUnderstoods = ()
    if (~is_known & ~body.equal("")).any():
        body, newer = before_newer_sections(body, is_known)
        is_allocation, is_value, is_known = (
            mask[: len(body)] for mask in (is_allocation, is_value, is_known)
        )
        if (other := ~is_known & ~body.equal("")).any():
            body.refuse(other, "expected an allocation or a value")
    allocation_lines, value_lines = body.where(is_allocation), body.where(is_value)
    allocations, newer_attributes = _allocations(allocation_lines)
    of_allocations, of_values = allocation_lines.bounds(starts), value_lines.bounds(starts)
    has_none = of_allocations[1:] == of_allocations[:-1]
    if has_none.any():
        raise DumpError(
            "the file ends before its first allocation: dump the program again",
            int(lines.numbers[bounds[np.argmax(has_none) + 1] - 1]),
        )
    # A value belongs to the last allocation line before the value.
    owner = np.cumsum(is_allocation)[is_value] - 1
    is_first = np.flatnonzero(of_values[1:] > of_values[:-1])
    if (owner[of_values[is_first]] < of_allocations[is_first]).any():
        body.refuse(is_value, "expected an allocation before the first value")
    values, newer_values = _values(value_lines)
    index = allocations["allocation_index"].take(pa.array(owner))
    newer = (*newer_attributes, *newer_values, *newer)
    return [
        BufferAssignment(*tables, not_understood=newer)
        for tables in zip(
            divided(allocations, of_allocations),
            divided(values.append_column("allocation_index", index), of_values),
            strict=True,
        )
    ]


def _allocations(lines: Lines) -> tuple[pa.Table, NotUnderstoods]:
    known, newer = _known_attributes(lines)
    found = known.extract(_ALLOCATION, "an allocation")
    is_parameter = pc.not_equal(found["parameter"], "")
    is_output = pc.not_equal(found["output"], "")
    null = pa.scalar(None, pa.large_string())
    shape = pc.if_else(
        is_parameter, found["parameter_shape"], pc.if_else(is_output, found["output_shape"], null)
    )
    table = pa.table(
        {
            "allocation_index": lines.integers(found["allocation_index"]),
            "memory_space": pc.fill_null(lines.integers(found["memory_space"]), 0),
            "size_bytes": lines.integers(found["size_bytes"], most=LARGEST_SIZE),
            "is_parameter": is_parameter,
            "parameter_number": lines.integers(found["parameter_number"]),
            "parameter_shape_index": pc.if_else(is_parameter, found["parameter_shape_index"], null),
            "is_output": is_output,
            "is_constant": pc.not_equal(found["constant"], ""),
            "is_thread_local": pc.not_equal(found["thread_local"], ""),
            "maybe_live_out": pc.not_equal(found["live_out"], ""),
            "is_temp": pc.not_equal(found["temp"], ""),
            "shape": shape,
            "address": _addresses(lines, found["address"]),
        }
    )
    return table, newer


def _known_attributes(lines: Lines) -> tuple[Lines, NotUnderstoods]:
    """The allocations without the attributes of a newer XLA, and these attributes.

    Raises DumpError where such an attribute may be what decides a figure: in an allocation of
    no known kind, or if the attribute is nearly a known one.
    """
    other = pc.invert(pc.match_substring_regex(lines.text, _ALLOCATION))
    if not pc.any(other).as_py():
        return lines, ()
    chosen = lines.where(as_numpy(other))
    parts = pc.extract_regex(chosen.text, pattern=_START)
    if parts.null_count:
        chosen.refuse(as_numpy(pc.is_null(parts)), "expected an allocation")
    start, rest = pc.struct_field(parts, "start"), pc.struct_field(parts, "rest")
    nothing = pa.scalar("", start.type)
    end = r"(?:, |$)"
    held = [
        pc.fill_null(
            pc.struct_field(pc.extract_regex(rest, pattern=f"(?P<it>{known}){end}"), "it"), nothing
        )
        for known in _ATTRIBUTES
    ]
    # What is left when each known attribute is taken out once.
    newer = reduce(
        lambda left, known: pc.replace_substring_regex(
            left, pattern=f"{known}(, |$)", replacement=r"\1", max_replacements=1
        ),
        _ATTRIBUTES,
        rest,
    )
    lacks_kind = pc.invert(
        pc.match_substring_regex(pc.binary_join_element_wise(*held, nothing), "|".join(_KINDS))
    )
    wrong = pc.or_(lacks_kind, pc.invert(pc.match_substring_regex(newer, _NEWER)))
    words = {word for text in pc.unique(newer).to_pylist() for word in text[2:].split(", ")}
    alike = [word for word in sorted(words) if resembles(word.split(" ")[0], _WORDS)]
    for word in alike:
        wrong = pc.or_(wrong, pc.match_substring(newer, word))
    if pc.any(wrong).as_py():
        chosen.refuse(as_numpy(wrong), "expected an allocation")
    texts = lines.text.to_pylist()
    cleaned = pc.binary_join_element_wise(start, *held, pa.scalar(":", start.type), nothing)
    for at, text in zip(np.flatnonzero(as_numpy(other)), cleaned.to_pylist(), strict=True):
        texts[at] = text
    kept = lines_of(pa.array(texts, pa.large_string()), lines.numbers)
    names = pc.replace_substring_regex(newer, pattern=_VALUE_OF_NEWER, replacement=r"\1")
    return kept, newer_words(chosen, pc.utf8_ltrim(names, ", "), "attribute of an allocation")


def _addresses(lines: Lines, texts: pa.LargeStringArray) -> pa.Int64Array:
    if pc.all(pc.equal(texts, "")).as_py():
        return pa.nulls(len(texts), pa.int64())
    too_long = pc.greater(pc.binary_length(texts), 15)
    if pc.any(too_long).as_py():
        lines.refuse(np.asarray(too_long.to_numpy(zero_copy_only=False)), "an address is too long")
    return pa.array([int(text, 16) if text else None for text in texts.to_pylist()], pa.int64())


def _values(lines: Lines) -> tuple[pa.Table, NotUnderstoods]:
    names, places, shapes = _parts_of_values(lines)
    found = lines.extract(_PLACE, "a value", places)
    size_bytes = lines.integers(found["size_bytes"], most=LARGEST_SIZE)
    try:
        sizes = shape_columns(shapes)
    except ValueError as error:
        lines.refuse(_unparsable(shapes), str(error))
    element_type = sizes["element_type"]
    attributes = pc.replace_substring_regex(found["newer"], pattern="=[^,]*", replacement="")
    newer = newer_words(lines, pc.utf8_ltrim(attributes, ","), "attribute of a value")
    newer += newer_element_types(lines, element_type)
    # A tuple has no elements of its own, so its size is its index table, without padding. Of
    # an element type that is not known, nothing says how much of the size is padding.
    has_no_padding = pc.or_(
        pc.is_null(element_type),
        pc.is_in(element_type, value_set=pa.array(ELEMENT_BYTES, element_type.type)),
    )
    table = pa.table(
        {
            **value_names(lines, names),
            "offset_bytes": lines.integers(found["offset_bytes"], most=LARGEST_SIZE),
            "size_bytes": size_bytes,
            "logical_bytes": pc.coalesce(
                sizes["logical_bytes"],
                pc.if_else(has_no_padding, size_bytes, pa.scalar(None, size_bytes.type)),
            ),
            "shape": shapes,
            "element_type": element_type,
        }
    )
    return table, newer


def _unparsable(shapes: pa.LargeStringArray) -> npt.NDArray[np.bool_]:
    """Which shapes are invalid; only called if at least one is."""

    def is_bad(shape: str) -> bool:
        try:
            shape_columns(pa.array([shape]))
        except ValueError:
            return True
        return False

    return np.array([is_bad(shape) for shape in shapes.to_pylist()])


def _parts_of_values(lines: Lines) -> tuple[pa.LargeStringArray, ...]:
    """Of lines such as ` value: <4 add.1 @0> (size=8,offset=0): f32[2]` three parts: the name
    in angle brackets, the place in parentheses and the shape. Raises DumpError.
    """
    name_starts = lines.starts + len(" value: ")
    name_ends = lines.starts + pc.find_substring(lines.text, ">").to_numpy() + 1
    place_ends = lines.starts + pc.find_substring(lines.text, "): ").to_numpy() + 1
    shape_starts = place_ends + len(": ")
    wrong = (name_starts >= name_ends) | (name_ends >= place_ends) | (shape_starts >= lines.ends)
    if wrong.any():
        lines.refuse(wrong, "expected a value")
    return (
        slices(lines.content, name_starts, name_ends),
        slices(lines.content, name_ends, place_ends),
        slices(lines.content, shape_starts, lines.ends),
    )


def value_names(lines: Lines, names: pa.LargeStringArray) -> dict[str, pa.Array]:
    """The columns of a value's name, such as `<4 while.1{0} (phi) @0>`; row k is of line k.

    XLA prints the shape index only if the defining instruction's shape is a tuple. Otherwise
    the value is the whole array, `{}`. Raises DumpError.
    """
    found = lines.extract(_VALUE_NAME, "a value", names)
    # Few are distinct.
    ends = found["phi_space"].dictionary_encode()
    spaces = pc.utf8_ltrim(ends.dictionary, "(phi) @").take(ends.indices)
    whole = pa.scalar("{}", pa.large_string())
    return {
        "value_id": lines.integers(found["value_id"]),
        "instruction": found["instruction"],
        "shape_index": pc.if_else(pc.equal(found["shape_index"], ""), whole, found["shape_index"]),
        "is_phi": pc.starts_with(ends.dictionary, "(").take(ends.indices),
        "memory_space": lines.integers(spaces),
    }
