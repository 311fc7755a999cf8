"""Traits of a module: facts that explain the change between two programs.

`schema/causes` reads them by these names:

- operation: by opcode, the number of instructions
- program_shapes, program_layouts: a hash of all opcodes with their shapes, without and with
  layouts, in any order; program_order: a hash of the same in the schedule's order;
  collectives: a hash of the collectives alone, in any order
- forward, recomputed: by operation, the instructions of the forward pass, and those that
  `jax.checkpoint` computes again in the backward pass; only of costly operations, without
  get-tuple-elements. Under the empty name: of all operations
- clones: the instructions that XLA made to compute something again
- loops: the loops that the framework wrote, but for those that make random bits
- computed: by element type, the bytes that instructions compute; product: by element type, the
  matrix products and convolutions of the forward pass
- random: by source line, the instructions that make random bits, such as dropout's
- peak_at: the source line or operation that runs at the main memory's peak, with the amount 1

An amount of 0 has no row.
"""

import re
import struct
from collections import Counter
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import Final, NamedTuple

from .attribution import Attribution
from .opcodes import COLLECTIVES
from .parts import AssignedValue
from .passes import FORWARD, REMATERIALISED
from .program import NONE, Program

# A checkpoint policy names these, because they are costly to compute again.
_COSTLY_OPERATIONS = """
    dot_general ragged_dot conv_general_dilated gather scatter sort top_k fft pallas_call
    tpu_custom_call ffi_call psum all_gather all_to_all reduce_scatter psum_scatter ppermute
"""
_COSTLY: Final = tuple(_COSTLY_OPERATIONS.split())
# These only name or move data.
_MOVING = """
    parameter constant tuple get-tuple-element bitcast while conditional call copy copy-start
    copy-done slice-start slice-done
"""
_MOVES: Final = frozenset(_MOVING.split())
# Parts of the scopes and operations that make random bits.
_RANDOM: Final = re.compile("random_bits|threefry|rng_bit_generator|random_gamma|_bernoulli")
# A layout follows an array's dimensions; tuples contain comments such as `/*index=5*/`.
_LAYOUT: Final = re.compile(r"\{[^{}]*\}|/\*index=\d+\*/")
# Only the largest source lines have a row each, if they have at least this share of the total.
_MAX_LINES: Final = 48
_MIN_SHARE: Final = 0.002


class Trait(NamedTuple):
    """A row of `traits`."""

    trait: str
    name: str
    amount: int


def find_traits(
    attribution: Attribution,
    values: Iterable[AssignedValue],
    times: Sequence[int] | None,
    lines: Sequence[str | None],
    peak_instruction_id: int | None,
) -> list[Trait]:
    """The traits of a program.

    Args:
        values: those of the buffer assignment.
        times: by row, the time in the dumped schedule, or NONE; None without a schedule. Ids
            beyond the program's rows are ignored.
        lines: by row, the source line of the user's code, such as `zoo.py:40`.
        peak_instruction_id: the row of the instruction that runs at the main memory's peak, or
            an id beyond the program's rows if the HLO text lacks it; None if unknown.
    """
    program, passes = attribution.analysis.program, attribution.passes
    operations = _operations(attribution)
    random_rows = _random_rows(attribution)
    # Newer XLA prints get-tuple-elements within operands, without their names.
    rows = [row for row, opcode in enumerate(program.opcode) if opcode != "get-tuple-element"]
    forward = [row for row in rows if passes.by_row[row] == FORWARD]
    recomputed = [
        row for row in rows if passes.by_row[row] == REMATERIALISED and not passes.is_clone[row]
    ]
    loops = [
        row
        for row in rows
        if program.opcode[row] == "while" and (operations[row] or "").startswith("while")
    ]
    amounts: dict[str, dict[str, int]] = {
        "operation": Counter(program.opcode),
        **_hashes(program, times),
        "clones": {"": sum(passes.is_clone)},
        "forward": _count_costly(operations, forward),
        "recomputed": _count_costly(operations, recomputed),
        "loops": {"": len(set(loops) - random_rows)},
        "product": _count_products(program, operations, forward),
        "random": _largest(Counter(_label(attribution, lines, row) for row in random_rows)),
        "computed": _computed_bytes(program, values),
    }
    if peak_instruction_id is not None:
        amounts["peak_at"] = {_label(attribution, lines, peak_instruction_id): 1}
    return [
        Trait(trait, name, amount)
        for trait, by_name in amounts.items()
        for name, amount in by_name.items()
        if amount
    ]


def _hashes(program: Program, times: Sequence[int] | None) -> dict[str, dict[str, int]]:
    """Hashes of the opcodes and shapes of all instructions and of the collectives."""
    kinds, kinds_with_layout, collectives = Counter[str](), Counter[str](), Counter[str]()
    kind_of: dict[tuple[str, str], str] = {}
    pairs = Counter(zip(program.opcode, program.shape, strict=True))
    for (opcode, shape), count in pairs.items():
        if opcode not in ("tuple", "get-tuple-element", "parameter"):
            kind = kind_of[opcode, shape] = f"{opcode} {_LAYOUT.sub('', shape)}"
            kinds[kind] += count
            kinds_with_layout[f"{opcode} {shape}"] += count
            if opcode in COLLECTIVES:
                collectives[kind] += count
    hashes = {"program_shapes": _hash64(kinds), "program_layouts": _hash64(kinds_with_layout)}
    # Without live ranges and a scheduled text the order is not known.
    if times is not None:
        timed = [(time, row) for row, time in enumerate(times[: len(program)]) if time != NONE]
        order = (kind_of.get((program.opcode[row], program.shape[row])) for _, row in sorted(timed))
        hashes["program_order"] = _hash64(kinds, [kind for kind in order if kind is not None])
    hashes["collectives"] = _hash64(collectives)
    return {trait: {"": hash64} for trait, hash64 in hashes.items()}


def _hash64(kinds: Counter[str], ordered: Sequence[str] | None = None) -> int:
    """A 63-bit hash of kinds of instructions, the same in every process.

    Args:
        kinds: the kinds, with the number of instructions of each.
        ordered: the kinds of the instructions in their order. Without it they are sorted.
    """
    distinct = sorted(kinds)
    number = {kind: index for index, kind in enumerate(distinct)}
    ordered = sorted(kinds.elements()) if ordered is None else ordered
    numbers = [number[kind] for kind in ordered]
    content = "\0".join(distinct).encode(errors="surrogateescape")
    content += struct.pack(f"<{len(numbers)}q", *numbers)
    return int.from_bytes(blake2b(content, digest_size=8).digest(), "big") >> 1


def _operations(attribution: Attribution) -> list[str | None]:
    """By row, the operation in the instruction's op_name; None if that has no path."""
    scopes = attribution.scopes
    by_scope = [*(scope.operation for scope in scopes.rows), None]
    # The last entry is that of NONE.
    return [by_scope[scope] for scope in scopes.scope_id]


def _count_costly(operations: list[str | None], rows: Iterable[int]) -> dict[str, int]:
    """The number of these instructions, under the empty name, and of each costly operation."""
    counts = dict.fromkeys(("", *_COSTLY), 0)
    for operation, count in Counter(operations[row] for row in rows).items():
        if operation is not None:
            counts[""] += count
            name = next((name for name in _COSTLY if operation.startswith(name)), "")
            if name:
                counts[name] += count
    return counts


def _count_products(
    program: Program, operations: list[str | None], rows: Iterable[int]
) -> dict[str, int]:
    """By element type, the matrix products and convolutions among these instructions."""
    products: Counter[str] = Counter()
    for row in rows:
        is_product = (operations[row] or "").startswith(("dot_general", "conv_general"))
        if is_product and program.opcode[row] in ("dot", "convolution", "custom-call"):
            # The first element of a tuple with the kernel's workspace is the product.
            products[program.shape[row].lstrip("(").split("[")[0]] += 1
    return dict(sorted(products.items()))


def _random_rows(attribution: Attribution) -> set[int]:
    """The instructions that make random bits, by their operation or a scope around it."""
    scopes = attribution.scopes
    is_random = [bool(_RANDOM.search(f"{row.scope}/{row.operation}")) for row in scopes.rows]
    return {
        row
        for row, opcode in enumerate(attribution.analysis.program.opcode)
        if opcode in ("rng", "rng-bit-generator")
        or (scopes.scope_id[row] != NONE and is_random[scopes.scope_id[row]])
    }


def _label(attribution: Attribution, lines: Sequence[str | None], row: int) -> str:
    """The source line of an instruction, otherwise its operation, otherwise its opcode."""
    program, scopes = attribution.analysis.program, attribution.scopes
    if row >= len(program):
        return "(not known)"
    scope = scopes.scope_id[row]
    return lines[row] or (program.opcode[row] if scope == NONE else scopes.rows[scope].operation)


def _largest(amounts: Counter[str]) -> dict[str, int]:
    """The largest amounts in descending order, equal ones by name."""
    min_amount = _MIN_SHARE * amounts.total()
    order = sorted(amounts, key=lambda name: (-amounts[name], name))[:_MAX_LINES]
    return {name: amounts[name] for name in order if amounts[name] >= min_amount}


def _computed_bytes(program: Program, values: Iterable[AssignedValue]) -> dict[str, int]:
    """By element type, the bytes that instructions compute, without copies."""
    computed: Counter[str] = Counter()
    for value in values:
        row = program.row_of.get(value.instruction, NONE)
        if row != NONE and program.opcode[row] not in _MOVES and value.element_type is not None:
            computed[value.element_type] += value.logical_bytes or 0
    return dict(sorted(computed.items()))
