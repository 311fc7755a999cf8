"""A module's traits: the facts by which the cause of a change is told, worked out at ingest."""

from collections.abc import Mapping
from functools import cache
from hashlib import blake2b
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .attribution import Attribution
from .columns.bridge_e import lines_of, main_memory
from .columns.program import NONE, Ints, Mask, NumberedProgram
from .opcodes import COLLECTIVES
from .passes import FORWARD, REMATERIALISED
from .runs import ints
from .shifts import Divided, Shifts

# By source line.

# Rows of one trait: of which program, the name and the amount.
Rows = tuple[Ints, list[str], Ints]

# The largest lines have a row each, if they have at least this share of the bytes of all.
_MOST_LINES = 48
_LEAST_SHARE = 0.002


def _by_line(tables: Mapping[str, pa.Table], shifts: Shifts, instruction: Ints, size: Ints) -> Rows:
    """The bytes of each line's instructions; of each program's largest lines alone."""
    rows = tables["instructions"]
    wanted = ("instruction_id", "source_file", "source_line", "scope_id", "opcode")
    rows = rows.select([name for name in wanted if name in rows.column_names])
    rows = rows.take(pa.array(instruction))
    scopes = tables["scopes"]
    place = pc.index_in(rows["scope_id"], value_set=scopes["scope_id"].combine_chunks())
    name = pc.coalesce(
        lines_of(rows),
        scopes["operation"].take(place).cast(pa.string()),
        rows["opcode"].cast(pa.string()),
        "(not known)",
    )
    encoded = name.combine_chunks().dictionary_encode()
    texts = encoded.dictionary.to_pylist()
    rank = np.argsort(np.argsort(np.array(texts, object))) if texts else np.zeros(0, np.int64)
    program = shifts.of("instruction", instruction)
    of, line, total = summed(program, ints(encoded.indices), size)
    order = np.lexsort((rank[line], -total, of))
    of, line, total = of[order], line[order], total[order]
    whole = np.zeros(len(shifts), np.int64)
    np.add.at(whole, program, size)
    number = np.arange(len(of)) - np.searchsorted(of, np.arange(len(shifts)))[of]
    kept = (number < _MOST_LINES) & (total >= _LEAST_SHARE * whole[of])
    return of[kept], [texts[each] for each in line[kept].tolist()], total[kept]


def summed(program: Ints, keys: Ints, amounts: Ints) -> tuple[Ints, Ints, Ints]:
    """The distinct keys of each program in order, and the sum of the amounts of each.

    Arrow would do it too, but to import its grouping takes longer than all that is grouped.
    """
    width = int(keys.max(initial=0)) + 1
    found, at = np.unique(program * width + keys, return_inverse=True)
    sums = np.zeros(len(found), np.int64)
    np.add.at(sums, at, amounts)
    return found // width, found % width, sums


# A module's traits: the facts by which the cause of a change is told, worked out at ingest.
#
# `schema/causes` reads them by these names:
#
# - operation: by opcode, the number of instructions
# - program_shapes, program_layouts: a hash of all opcodes with their shapes, without and with
#   layouts, in any order; program_order: a hash of the same in the schedule's order;
#   collectives: a hash of the collectives alone, in any order
# - forward, recomputed: by operation, the instructions of the forward pass, and those that
#   `jax.checkpoint` computes again in the backward pass; only of costly operations, without
#   get-tuple-elements. Under the empty name: of all operations
# - clones: the instructions that XLA made to compute something again
# - loops: the loops that the framework wrote, but for those that make random bits
# - computed: by element type, the bytes of what is computed; product: by element type, the
#   matrix products and convolutions of the forward pass
# - random: by source line, the instructions that make random bits, such as dropout's
# - peak_at: the source line or operation that runs at the main memory's peak, with the amount 1
#
# An amount of 0 has no row.

# What a checkpoint policy names, because it is costly to compute again.
_COSTLY = (
    *("dot_general", "ragged_dot", "conv_general_dilated", "gather", "scatter", "sort", "top_k"),
    *("fft", "pallas_call", "tpu_custom_call", "ffi_call", "psum", "all_gather", "all_to_all"),
    *("reduce_scatter", "psum_scatter", "ppermute"),
)
# What only names or moves data computes nothing.
_MOVES = (
    *("parameter", "constant", "tuple", "get-tuple-element", "bitcast", "while", "conditional"),
    *("call", "copy", "copy-start", "copy-done", "slice-start", "slice-done"),
)
# What makes random bits.
_RANDOM = "random_bits|threefry|rng_bit_generator|random_gamma|_bernoulli"
# A layout follows an array's dimensions; tuples hold comments such as `/*index=5*/`.
_LAYOUT = r"\{[^{}]*\}|/\*index=\d+\*/"


def traits_of(attribution: Attribution, tables: Mapping[str, pa.Table], shifts: Shifts) -> Divided:
    """The rows of `traits` of each program, without module_id; `tables` has the other rows."""
    program = attribution.derived.program
    is_random = _is_random(attribution)
    random = np.flatnonzero(is_random)
    found = {
        **_program(program, tables["instructions"]),
        **_rematerialisation(attribution),
        **_loops_and_products(attribution, is_random),
        "random": _by_line(tables, shifts, random, np.ones(len(random), np.int64)),
    }
    if "element_type" in tables.get("values", pa.table({})).column_names:
        found["computed"] = _computed(program, tables["values"])
    if "live_ranges" in tables and "module_memory" in tables:
        at = main_memory(tables, shifts)["peak_instruction_id"]
        at = at[at != NONE]
        found["peak_at"] = _by_line(tables, shifts, at, np.ones(len(at), np.int64))
    of = np.concatenate([each for each, _, _ in found.values()])
    amount = np.concatenate([each for _, _, each in found.values()])
    names = [name for _, each, _ in found.values() for name in each]
    traits = [trait for trait, (each, _, _) in found.items() for _ in range(len(each))]
    rows = np.argsort(of, kind="stable")
    rows = rows[amount[rows] != 0]
    table = pa.table(
        {
            "trait": pa.array(traits, pa.string()).take(pa.array(rows)),
            "name": pa.array(names, pa.string()).take(pa.array(rows)),
            "amount": amount[rows],
        }
    )
    return Divided(table, np.searchsorted(of[rows], np.arange(len(shifts) + 1)))


def _program(program: NumberedProgram, instructions: pa.Table) -> dict[str, Rows]:
    """What the instructions are, and in which order they are scheduled."""
    chosen = np.flatnonzero(~program.opcode.is_one_of("tuple", "get-tuple-element", "parameter"))
    bare = pc.replace_substring_regex(pa.array(program.shape.texts, pa.large_string()), _LAYOUT, "")
    kinds = _Kinds(program, chosen, bare.to_pylist())
    order = {}
    # Without live ranges and a scheduled text nothing tells the order.
    if "schedule_time" in instructions.column_names:
        time = pc.fill_null(instructions["schedule_time"], NONE).to_numpy()[chosen]
        in_order = np.argsort(time, kind="stable")
        in_order = in_order[time[in_order] != NONE]
        order = {"program_order": kinds.hashes(in_order)}
    collectives = np.flatnonzero(program.opcode.is_one_of(*COLLECTIVES))
    width = len(program.opcode.texts)
    opcodes = program.program_of * width + program.opcode.codes
    # In the order in which the program has them.
    found, first, counts = np.unique(opcodes, return_index=True, return_counts=True)
    by_first = np.argsort(first)
    found, counts = found[by_first], counts[by_first]
    names = [program.opcode.texts[code] for code in (found % width).tolist()]
    return {
        "operation": (found // width, names, counts),
        "program_shapes": kinds.hashes(),
        "program_layouts": _Kinds(program, chosen, program.shape.texts).hashes(),
        **order,
        "collectives": _Kinds(program, collectives, bare.to_pylist()).hashes(),
    }


class _Kinds:
    """The kinds of chosen instructions: their opcodes and shapes."""

    def __init__(self, program: NumberedProgram, chosen: Ints, shapes: list[str]) -> None:
        width = len(shapes)
        pairs, place = np.unique(
            program.opcode.codes[chosen] * width + program.shape.codes[chosen], return_inverse=True
        )
        told = [f"{program.opcode.texts[pair // width]} {shapes[pair % width]}" for pair in pairs]
        self._texts = sorted(set(told))
        rank = {text: number for number, text in enumerate(self._texts)}
        self._kind = np.array([rank[text] for text in told], np.int64)[place]
        self._program_of, self._count = program.program_of[chosen], len(program.entries)

    def hashes(self, order: Ints | None = None) -> Rows:
        """A hash of the kinds of each program in an order, or in any."""
        kind, of = self._kind, self._program_of
        order = np.argsort(kind, kind="stable") if order is None else order
        order = order[np.argsort(of[order], kind="stable")]
        kind, every = kind[order], np.sort(of * (len(self._texts) + 1) + self._kind)
        numbers = np.arange(self._count + 1)
        bounds = np.searchsorted(of[order], numbers)
        starts = np.searchsorted(every, numbers * (len(self._texts) + 1))
        found = []
        for (start, stop), (first, last) in zip(pairwise(bounds), pairwise(starts), strict=True):
            # A program's kinds have numbers of their own.
            own = np.unique(every[first:last] % (len(self._texts) + 1))
            texts = [self._texts[each] for each in own.tolist()]
            found.append(_hash64(texts, np.searchsorted(own, kind[start:stop])))
        return numbers[:-1], [""] * self._count, np.array(found, np.int64)


def _hash64(texts: list[str], numbers: Ints) -> int:
    """A 63-bit hash, the same in every process."""
    content = "\0".join(texts).encode(errors="surrogateescape")
    digest = blake2b(content + numbers.astype("<i8").tobytes(), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1


def _counted(program_of: Ints, count: int) -> Rows:
    """How many of these each program has."""
    counts = np.bincount(program_of, minlength=count)
    return np.arange(count), [""] * count, counts


def _rematerialisation(attribution: Attribution) -> dict[str, Rows]:
    """What JAX and XLA compute again, beside what the forward pass computes."""
    program = attribution.derived.program
    is_clone, codes = attribution.passes.is_clone, attribution.passes.codes
    operations = attribution.scopes["operation"].to_pylist()
    # Newer XLA prints these within operands, without their names.
    is_told = ~program.opcode.is_one_of("get-tuple-element")
    forward = is_told & (codes == FORWARD)
    recomputed = is_told & (codes == REMATERIALISED) & ~is_clone
    return {
        "clones": _counted(program.program_of[is_clone], len(program.entries)),
        "forward": _operations(attribution, forward, operations),
        "recomputed": _operations(attribution, recomputed, operations),
    }


def _loops_and_products(attribution: Attribution, is_random: Mask) -> dict[str, Rows]:
    """The framework's loops, and the types of the forward pass's products."""
    program = attribution.derived.program
    operations = attribution.scopes["operation"].to_pylist()
    is_loop, is_product = (
        np.array([operation.startswith(names) for operation in operations] + [False])
        for names in ("while", ("dot_general", "conv_general"))
    )
    loops = program.opcode.is_one_of("while") & is_loop[attribution.scope]
    loops &= ~is_random
    products = program.opcode.is_one_of("dot", "convolution", "custom-call")
    products &= is_product[attribution.scope] & (attribution.passes.codes == FORWARD)
    # Of a tuple with the kernel's workspace, the first element is the product.
    shapes = program.shape.texts
    of, code, count = summed(
        program.program_of[products],
        program.shape.codes[products],
        np.ones(np.count_nonzero(products), np.int64),
    )
    types = [shapes[shape].lstrip("(").split("[")[0] for shape in code.tolist()]
    return {
        "loops": _counted(program.program_of[loops], len(program.entries)),
        "product": _by_name(of, types, count),
    }


def _by_name(program: Ints, names: list[str], amounts: Ints) -> Rows:
    """The rows by program and name, with the sum of the amounts of each name."""
    sums: dict[tuple[int, str], int] = {}
    for of, name, amount in sorted(zip(program.tolist(), names, amounts.tolist(), strict=True)):
        sums[of, name] = sums.get((of, name), 0) + amount
    numbers = np.array([of for of, _ in sums], np.int64)
    return numbers, [name for _, name in sums], np.array(list(sums.values()), np.int64)


def _is_random(attribution: Attribution) -> Mask:
    """The instructions that make random bits: their operation or a scope around it says so."""
    scopes = attribution.scopes
    names = pc.binary_join_element_wise(
        scopes["scope"].cast(pa.string()), scopes["operation"].cast(pa.string()), "/"
    )
    is_named = pc.fill_null(pc.match_substring_regex(names, _RANDOM), False).to_numpy()
    is_bits = attribution.derived.program.opcode.is_one_of("rng", "rng-bit-generator")
    is_random: Mask = np.append(is_named, False)[attribution.scope] | is_bits
    return is_random


def _operations(attribution: Attribution, chosen: Mask, operations: list[str]) -> Rows:
    """How many instructions belong to any operation, and to each costly one."""
    program = attribution.derived.program
    chosen = chosen & (attribution.scope != NONE)
    of = program.program_of[chosen]
    # By the order of the names, after that of all.
    place = np.array([_costly(operation) for operation in operations] + [0], np.int64)
    costly = place[attribution.scope[chosen]]
    width = len(_COSTLY) + 1
    counts = np.bincount(of * width + costly, minlength=width * len(program.entries))
    counts = counts.reshape(-1, width)
    counts[:, 0] = counts.sum(axis=1)
    numbers = np.repeat(np.arange(len(program.entries)), width)
    return numbers, ["", *_COSTLY] * len(program.entries), counts.ravel()


@cache
def _costly(operation: str) -> int:
    """The number of a costly operation, from 1; 0 of another one."""
    return next((n for n, name in enumerate(_COSTLY, 1) if operation.startswith(name)), 0)


def _computed(program: NumberedProgram, values: pa.Table) -> Rows:
    """The bytes of each element type that instructions compute, copies left out."""
    row = values["instruction_id"].to_numpy()
    moves = np.append(program.opcode.is_one_of(*_MOVES), True)
    computes = ~moves[np.minimum(row, len(program))]
    types = values["element_type"].combine_chunks().dictionary_encode()
    type_, size = ints(types.indices), ints(values["logical_bytes"])
    known = computes & (type_ != NONE) & (size != NONE)
    of, type_, sums = summed(program.program_of[row[known]], type_[known], size[known])
    names = types.dictionary.to_pylist()
    return _by_name(of, [names[each] for each in type_.tolist()], sums)
