"""Arguments that are not donated, though an output could take their memory."""

import re
from collections.abc import Sequence

from ....schema.readable import human_bytes
from ...cells import counted
from ..asked_program import Program, function_line, line_of
from ..donation import CARRY, DonationGroup, carries_copies, donation_groups, grade_of
from ..finding import Finding, Grade
from . import INSTRUCTIONS, OWNERS

PLACE, COMPUTES_AGAIN = 0, False
NEEDS: frozenset[str] = frozenset({OWNERS, INSTRUCTIONS})


def not_donated(program: Program) -> list[Finding]:
    """What to donate together, and what needs another change before; what only fits comes last."""
    return [_finding(program, each) for each in donation_groups(program)]


def _finding(program: Program, group: DonationGroup) -> Finding:
    donation, name = group.donation, group.named
    grade, tolerance = grade_of(program, group)
    told = donation.most_bytes if carries_copies(program, group) else donation.least_bytes
    its = "their" if group.alone else "its"
    title = f"donate {name}: outputs could take {its} {human_bytes(group.size_bytes)}"
    if group.only_fits:
        return _fitting(program, group)
    if group.is_scanned:
        title = f"carry {name} through the loop and donate it: donating alone brings nothing"
        if not carries_copies(program, group):
            title = f"carry {name} through the loop and donate it: donating alone brings less"
    return Finding(
        kind="not donated",
        title=title,
        grade=grade,
        write=_write(program, group),
        why=_why(program, group),
        value_ids=_value_ids(group),
        source=_source(program, group) if group.is_scanned else function_line(program),
        saving_bytes=told,
        low_bytes=donation.least_bytes if grade is Grade.between else told,
        high_bytes=donation.most_bytes if grade is Grade.between else told,
        tolerance=tolerance,
        change=donation.without_copies if carries_copies(program, group) else donation.change,
    )


def _fitting(program: Program, group: DonationGroup) -> Finding:
    """Whether the caller reads an input again, no dump says, so that nothing is promised."""
    most = human_bytes(group.donation.most_bytes)
    return Finding(
        kind="input that fits an output",
        title=f"{group.named} is an input that fits an output: donating it saves at most {most}",
        grade=Grade.fact,
        write=f"if nobody reads it again: {_keyword(program, group.arguments)}",
        why=_why(program, group),
        value_ids=_value_ids(group),
        source=function_line(program),
        high_bytes=group.donation.most_bytes,
        change=group.donation.without_copies,
    )


def _value_ids(group: DonationGroup) -> tuple[int, ...]:
    """The arguments and their outputs, the largest first."""
    pairs = sorted(
        (each.pair for each in group.foreseen), key=lambda pair: -pair.argument.padded_bytes
    )
    return tuple(pair.argument.value_id for pair in pairs) + tuple(
        pair.output.value_id for pair in pairs
    )


def _why(program: Program, group: DonationGroup) -> str:
    """How many arrays are paired with outputs, and what XLA copies all the same."""
    pairs = [each.pair for each in group.foreseen]
    by_shape = sum(pair.by_shape for pair in pairs)
    said = [f"{counted(by_shape, 'output')} of the same type and dimensions"] if by_shape else []
    if len(pairs) > by_shape:
        said.append(f"{counted(len(pairs) - by_shape, 'output')} of the same bytes")
    told = f"{' and '.join(said)} could lie in the memory of arrays of {group.named}"
    if group.alone:
        alone = zip(group.arguments, group.alone, strict=True)
        told += f"; alone: {', '.join(f'{name} {human_bytes(saved)}' for name, saved in alone)}"
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
        f"{f' ({line})' if line else ''} reads {first.pair.argument.name or group.named} {how}"
    )


def _name(program: Program, instruction_id: int | None) -> str:
    rows = program.rows(
        "SELECT instruction FROM instructions WHERE module_id = $1 AND instruction_id = $2",
        [instruction_id],
    ).to_pylist()
    return str(rows[0]["instruction"]) if rows else "an instruction"


def _source(program: Program, group: DonationGroup) -> str | None:
    """The line of the loop that reads what it writes beside."""
    loops = [each.loop for each in group.copied if each.loop is not None]
    return line_of(program, loops[0]) or function_line(program)


def _write(program: Program, group: DonationGroup) -> str:
    keyword = _keyword(program, group.arguments)
    if group.is_scanned:
        return f"{CARRY}; then {keyword}"
    # What a training step takes in, its caller has no more use for.
    return keyword if program.trains else f"if nobody reads the old value again: {keyword}"


def _keyword(program: Program, arguments: Sequence[str]) -> str:
    """What to write in `jax.jit`.

    `args[1]` is the second place only where all are called so: else `args` is a name. Of `name[0]`
    no dump says whether the function has `name` or `*name`, which no keyword can name.
    """
    arrays = [each for each in program.entry_arrays.to_pylist() if not each["is_output"]]
    names = [str(each["op_name"]) for each in arrays if each["op_name"]]
    places = [_PLACE.fullmatch(each) for each in arguments]
    if all(places) and all(map(_PLACE.match, names)):
        return f"donate_argnums={tuple(int(each[1]) for each in places if each)} in jax.jit"
    its = "its place" if len(arguments) == 1 else "their places"
    if any(each.startswith("argument ") for each in arguments):
        return f"{its} in donate_argnums in jax.jit; arguments are numbered array by array here"
    is_list = any(re.match(re.escape(each) + r"\[\d", name) for each in arguments for name in names)
    if is_list or any(places):
        return f"{its} in donate_argnums in jax.jit"
    called = tuple(each.removeprefix("kwargs['").removesuffix("']") for each in arguments)
    return f"donate_argnames={called} in jax.jit, or {its} in donate_argnums"


_PLACE = re.compile(r"arg(?:s|uments)\[(\d+)\]")
