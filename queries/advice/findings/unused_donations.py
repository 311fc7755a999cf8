"""Arguments that are donated, and whose memory no output takes."""

from collections.abc import Sequence

from ....schema.readable import human_bytes
from ...cells import without_layout
from ..asked_program import Program, function_line
from ..donation import EntryArray, entry_arrays, partitions
from ..finding import Finding, Grade
from . import OWNERS

PLACE, COMPUTES_AGAIN = 2, False
NEEDS: frozenset[str] = frozenset({OWNERS})

_WORTH = 0.001


def unused_donations(program: Program) -> list[Finding]:
    """A finding for each argument that a user can name, the largest first. All are facts.

    It says which output comes nearest to the largest array, and in what the two differ. What
    JAX itself dropped, with a warning, is not in the program.
    """
    arguments, outputs = entry_arrays(program)
    by_name: dict[str, list[EntryArray]] = {}
    for each in arguments:
        if each.is_donated and not each.is_shared:
            by_name.setdefault(each.top_level, []).append(each)
    count = partitions(program)
    found = [
        _finding(program, name, sorted(arrays, key=lambda each: -each.padded_bytes), outputs, count)
        for name, arrays in by_name.items()
        if sum(each.padded_bytes for each in arrays) > _WORTH * program.layout.peak_bytes
    ]
    return sorted(found, key=lambda each: each.title)


def _finding(
    program: Program,
    name: str,
    arrays: Sequence[EntryArray],
    outputs: Sequence[EntryArray],
    count: int,
) -> Finding:
    largest = arrays[0]
    size = human_bytes(sum(each.padded_bytes for each in arrays))
    # Arguments and results often stand in the same order.
    nearest = min(
        outputs,
        key=lambda each: (_difference(largest, each, count)[0], abs(each.place - largest.place)),
        default=largest,
    )
    _, why, write = _difference(largest, nearest, count)
    return Finding(
        kind="donated for nothing",
        title=f"{name} is donated, but no output takes {size} of it",
        grade=Grade.fact,
        write=write,
        why=f"{largest.name or name} is {without_layout(largest.shape)}; {why}",
        value_ids=tuple(each.value_id for each in arrays),
        source=function_line(program),
    )


def _difference(argument: EntryArray, output: EntryArray, count: int) -> tuple[int, str, str]:
    """How far an output is from an argument: 0 is nearest; in what; and what to write."""
    told = f"the nearest output, {output.index}, is {without_layout(output.shape)}: "
    same_type = argument.element_type == output.element_type
    if same_type and argument.dimensions == output.dimensions and argument != output:
        if argument.shape == output.shape:
            return 0, f"{told}it is the same, but its memory is another's", _RETURN
        return 1, f"{told}another layout, {argument.shape} in and {output.shape} out", _LAYOUT
    if argument.dimensions == output.dimensions and not same_type:
        return 2, f"{told}another type", f"return it as {argument.element_type}, as it came"
    if same_type and _is_sharded_otherwise(argument, output, count):
        return 3, f"{told}another sharding, as a device has another part of it", _SHARDING
    if same_type and argument.logical_bytes == output.logical_bytes:
        return 4, f"{told}other dimensions", "return it in the dimensions in which it came"
    return 5, "no output has its type and size", _RETURN


_RETURN = "do not donate it, or return its next value"
_LAYOUT = "give argument and result one layout, by in_shardings and out_shardings with a Format"
_SHARDING = "give the output the argument's sharding: out_shardings in jax.jit"


def _is_sharded_otherwise(argument: EntryArray, output: EntryArray, count: int) -> bool:
    """Whether both may be parts of one array: dimensions that differ do by a number of devices."""
    # A dimension with a bound alone, such as `<=8`, is no number.
    texts = [array.dimensions.split(",") for array in (argument, output)]
    if count == 1 or not all(each.isdecimal() for text in texts for each in text):
        return False
    ours, theirs = ([int(each) for each in text] for text in texts)
    if len(ours) != len(theirs) or argument.dimensions == output.dimensions:
        return False
    return all(
        max(pair) % min(pair) == 0 and count % (max(pair) // min(pair)) == 0
        for pair in zip(ours, theirs, strict=True)
        if min(pair)
    )
