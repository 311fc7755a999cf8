"""Arguments that are not donated, though an output could take their memory."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ..cells import counted, human_bytes
from .donation import Donation, donate
from .finding import Finding, Grade
from .foreseen_copies import Foreseen, Foresight
from .pairing import free_arrays, pair_up, partitions
from .program import Program
from .scanned import CARRY
from .source_lines import function_line, line_of
from .state import state_of

# Less than this part of the peak is not worth a finding.
_WORTH = 0.001
# How far the new peak was from the one told, in recompiled programs: one in twenty was lower.
_TPU_TOLERANCE = 0.01
_ESTIMATE_TOLERANCE = 0.05
# Of all TPUs: for dumps that do not say which TPU it is.
_LARGEST_VMEM = 128 << 20
# A program whose arguments are a few bytes needs no advice.
_LEAST_BYTES = 1 << 12


@dataclass(frozen=True)
class _Group:
    """Arrays of one argument that a user can name, with the outputs that would take their place.

    only_fits: the argument is an input of which nothing says that the output is its next value.
    """

    argument: str
    foreseen: list[Foreseen]
    donation: Donation
    only_fits: bool

    @property
    def copied(self) -> list[Foreseen]:
        return sorted(
            (each for each in self.foreseen if each.is_copied),
            key=lambda each: -each.pair.argument.padded_bytes,
        )


def not_donated(program: Program) -> list[Finding]:
    """A finding for each argument that a user can name; what only happens to fit comes last."""
    arguments, outputs = free_arrays(program)
    if not arguments or not outputs:
        return []
    count = partitions(program)
    foresight = Foresight(program)
    state = state_of(program, foresight, arguments, outputs)
    of_state = pair_up([each for each in arguments if each in state], outputs, count)
    taken = {each.output for each in of_state}
    of_inputs = pair_up(
        [each for each in arguments if each not in state],
        [each for each in outputs if each not in taken],
        count,
    )
    groups = _groups(program, foresight.foresee(of_state), only_fits=False)
    groups += _groups(program, foresight.foresee(of_inputs), only_fits=True)
    worth = max(_WORTH * program.layout.peak_bytes, _LEAST_BYTES)
    return [_finding(program, each) for each in groups if _most(program, each) > worth]


def _groups(program: Program, foreseen: Sequence[Foreseen], *, only_fits: bool) -> list[_Group]:
    """The arrays by the argument that a user can name, the largest saving first.

    Arrays for which donating brings nothing as the program is written are a group of their own.
    """
    by_name: dict[tuple[str, bool], list[Foreseen]] = {}
    for each in foreseen:
        key = each.pair.argument.top_level, _is_scanned_for_nothing(program, each)
        by_name.setdefault(key, []).append(each)
    groups = [
        _Group(name, group, donate(program, group), only_fits)
        for (name, _), group in by_name.items()
    ]
    return sorted(groups, key=lambda each: -each.donation.most_bytes)


def _most(program: Program, group: _Group) -> int:
    """The most that is told to be saved."""
    grade, _ = _grade(program, group)
    is_told_without_copies = grade is Grade.between or _carries(program, group)
    return group.donation.most_bytes if is_told_without_copies else group.donation.least_bytes


def _carries(program: Program, group: _Group) -> bool:
    return any(_is_scanned_for_nothing(program, each) for each in group.foreseen)


def _is_scanned_for_nothing(program: Program, foreseen: Foreseen) -> bool:
    """Whether a TPU's loop copies the output, so that donating the argument saves nothing."""
    return (
        program.platform == "tpu"
        and foreseen.is_copied
        and foreseen.loop is not None
        and not _may_lie_in_vmem(program, foreseen)
    )


def _may_lie_in_vmem(program: Program, foreseen: Foreseen) -> bool:
    """Whether a TPU may make the copy on the chip, so that its main memory has none."""
    vmem = program.vmem_bytes or _LARGEST_VMEM
    return foreseen.pair.argument.padded_bytes <= vmem


def _finding(program: Program, group: _Group) -> Finding:
    donation, name = group.donation, group.argument
    largest = sorted(group.foreseen, key=lambda each: -each.pair.argument.padded_bytes)
    size = sum(each.pair.argument.padded_bytes for each in group.foreseen)
    is_scanned = any(each.loop is not None for each in group.copied)
    grade, tolerance = _grade(program, group)
    told = donation.most_bytes if _carries(program, group) else donation.least_bytes
    title = f"donate {name}: outputs could take its {human_bytes(size)}"
    if group.only_fits:
        title = f"{name} is an input that only fits an output: donate it if nobody reads it again"
    elif is_scanned:
        title = f"carry {name} through the loop and donate it: donating alone brings nothing"
        if not _carries(program, group):
            title = f"carry {name} through the loop and donate it: donating alone brings less"
    return Finding(
        kind="input that fits an output" if group.only_fits else "not donated",
        title=title,
        grade=grade,
        write=f"{CARRY}; then {_keyword(name)}" if is_scanned else _keyword(name),
        why=_why(program, group),
        value_ids=tuple(each.pair.argument.value_id for each in largest)
        + tuple(each.pair.output.value_id for each in largest),
        source=_source(program, group) if is_scanned else function_line(program),
        saving_bytes=told,
        low_bytes=donation.least_bytes if grade is Grade.between else told,
        high_bytes=donation.most_bytes if grade is Grade.between else told,
        tolerance=tolerance,
        change=donation.change,
    )


def _grade(program: Program, group: _Group) -> tuple[Grade, float | None]:
    """How sure the figure is, and how far the new peak may be from the one told."""
    copied = group.copied
    if program.platform not in ("cpu", "tpu") or group.only_fits or _carries(program, group):
        return Grade.at_most, None
    if copied and (
        program.platform == "cpu" or any(_may_lie_in_vmem(program, each) for each in copied)
    ):
        return Grade.between, None
    if program.origin == "estimated":
        return Grade.expected, _ESTIMATE_TOLERANCE
    if program.platform == "cpu":
        return Grade.exact, 0.0
    return Grade.expected, _TPU_TOLERANCE


def _why(program: Program, group: _Group) -> str:
    """How many arrays are paired with outputs, and what XLA copies all the same."""
    pairs = [each.pair for each in group.foreseen]
    by_shape = sum(pair.by_shape for pair in pairs)
    said = [f"{counted(by_shape, 'output')} of the same type and dimensions"] if by_shape else []
    if len(pairs) > by_shape:
        said.append(f"{counted(len(pairs) - by_shape, 'output')} of the same bytes")
    told = f"{' and '.join(said)} could take the place of arrays of {group.argument}"
    if not group.copied:
        return told
    first = group.copied[0]
    size = sum(each.pair.argument.padded_bytes for each in group.copied)
    reader = _name(program, first.read_by)
    line = None if first.read_by is None else line_of(program, first.read_by)
    how = (
        "after the output is written"
        if program.platform == "tpu"
        else "and nothing orders that before the output is written"
    )
    return (
        f"{told}; XLA copies {human_bytes(size)} of it all the same, because {reader}"
        f"{f' ({line})' if line else ''} reads {first.pair.argument.name or group.argument} {how}"
    )


def _name(program: Program, instruction_id: int | None) -> str:
    rows = program.rows(
        "SELECT instruction FROM instructions WHERE module_id = $1 AND instruction_id = $2",
        [instruction_id],
    ).to_pylist()
    return str(rows[0]["instruction"]) if rows else "an instruction"


def _source(program: Program, group: _Group) -> str | None:
    """The line of the loop that reads what it writes beside."""
    loops = [each.loop for each in group.copied if each.loop is not None]
    return line_of(program, loops[0]) or function_line(program)


def _keyword(argument: str) -> str:
    """What to write in `jax.jit`."""
    found = re.fullmatch(r"arg(?:s|uments)\[(\d+)\]", argument)
    if found:
        return f"donate_argnums=({found.group(1)},) in jax.jit"
    if argument.startswith("argument "):
        return f"its place in donate_argnums in jax.jit; {argument} is its number among all arrays"
    name = argument.removeprefix("kwargs['").removesuffix("']")
    return f"donate_argnames=('{name}',) in jax.jit, or its place in donate_argnums"
