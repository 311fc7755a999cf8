"""A module's traits: the facts by which the cause of a change is told, worked out at ingest."""

from collections.abc import Mapping
from functools import cache
from hashlib import blake2b

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .attribution import Attribution
from .opcodes import COLLECTIVES
from .passes import FORWARD, REMATERIALISED
from .peak_parts import lines_of, main_memory
from .program import NONE, Ints, Mask, NumberedProgram
from .runs import ints

# By source line.

Rows = list[tuple[str, str, int]]

# The largest lines have a row each, if they have at least this share of the bytes of all.
_MOST_LINES = 48
_LEAST_SHARE = 0.002


def _by_line(trait: str, tables: Mapping[str, pa.Table], instruction: Ints, size: Ints) -> Rows:
    """The bytes of each line's instructions; of the largest lines alone."""
    if not len(instruction):
        return []
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
    of_line, total = summed(encoded.indices.to_numpy(), size)
    names = encoded.dictionary.take(pa.array(of_line)).to_pylist()
    largest = sorted(zip(total.tolist(), names, strict=True), key=lambda row: (-row[0], row[1]))
    least = _LEAST_SHARE * size.sum()
    return [(trait, name, bytes_) for bytes_, name in largest[:_MOST_LINES] if bytes_ >= least]


def summed(keys: Ints, amounts: Ints) -> tuple[Ints, Ints]:
    """The distinct keys in order, and the sum of the amounts of each.

    Arrow would do it too, but to import its grouping takes longer than all that is grouped.
    """
    found, at = np.unique(keys, return_inverse=True)
    sums = np.zeros(len(found), np.int64)
    np.add.at(sums, at, amounts)
    return found, sums


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


def _peak_at(tables: Mapping[str, pa.Table]) -> Rows:
    """What runs at the main memory's peak."""
    at = main_memory(tables).get("peak_instruction_id")
    if at is None:
        return []
    return _by_line("peak_at", tables, np.array([at]), np.ones(1, np.int64))


def traits_of(attribution: Attribution, tables: Mapping[str, pa.Table]) -> pa.Table:
    """The rows of `traits` without module_id; `tables` has the module's other rows."""
    program = attribution.derived.program
    rows = _program(program, tables["instructions"])
    is_random = _is_random(attribution)
    rows += _rematerialisation(attribution) + _loops_and_products(attribution, is_random)
    random = np.flatnonzero(is_random)
    rows += _by_line("random", tables, random, np.ones(len(random), np.int64))
    if "element_type" in tables.get("values", pa.table({})).column_names:
        rows += _computed(program, tables["values"])
    if "live_ranges" in tables and "module_memory" in tables:
        rows += _peak_at(tables)
    trait, name, amount = zip(*(row for row in rows if row[2]), strict=True)
    return pa.table(
        {
            "trait": pa.array(trait, pa.string()),
            "name": pa.array(name, pa.string()),
            "amount": pa.array(amount, pa.int64()),
        }
    )


def _program(program: NumberedProgram, instructions: pa.Table) -> Rows:
    """What the instructions are, and in which order they are scheduled."""
    chosen = np.flatnonzero(~program.opcode.is_one_of("tuple", "get-tuple-element", "parameter"))
    bare = pc.replace_substring_regex(pa.array(program.shape.texts, pa.large_string()), _LAYOUT, "")
    texts, kind = _kinds(program, chosen, bare.to_pylist())
    order: Rows = []
    # Without live ranges and a scheduled text nothing tells the order.
    if "schedule_time" in instructions.column_names:
        time = pc.fill_null(instructions["schedule_time"], NONE).to_numpy()[chosen]
        in_order = np.argsort(time, kind="stable")
        in_order = in_order[time[in_order] != NONE]
        order = [("program_order", "", _hash64(texts, kind[in_order]))]
    with_layouts = _kinds(program, chosen, program.shape.texts)
    collectives = np.flatnonzero(program.opcode.is_one_of(*COLLECTIVES))
    collective = _kinds(program, collectives, bare.to_pylist())
    counts = np.bincount(program.opcode.codes, minlength=len(program.opcode.texts))
    return [
        *(("operation", *row) for row in zip(program.opcode.texts, counts.tolist(), strict=True)),
        ("program_shapes", "", _hash64(texts, np.sort(kind))),
        ("program_layouts", "", _hash64(with_layouts[0], np.sort(with_layouts[1]))),
        *order,
        ("collectives", "", _hash64(collective[0], np.sort(collective[1]))),
    ]


def _kinds(program: NumberedProgram, chosen: Ints, shapes: list[str]) -> tuple[list[str], Ints]:
    """The kinds of instructions, sorted, and that of each chosen one: its opcode and shape."""
    width = len(shapes)
    pairs, place = np.unique(
        program.opcode.codes[chosen] * width + program.shape.codes[chosen], return_inverse=True
    )
    told = [f"{program.opcode.texts[pair // width]} {shapes[pair % width]}" for pair in pairs]
    texts = sorted(set(told))
    rank = {text: number for number, text in enumerate(texts)}
    return texts, np.array([rank[text] for text in told], np.int64)[place]


def _hash64(texts: list[str], numbers: Ints) -> int:
    """A 63-bit hash, the same in every process."""
    content = "\0".join(texts).encode(errors="surrogateescape")
    digest = blake2b(content + numbers.astype("<i8").tobytes(), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1


def _rematerialisation(attribution: Attribution) -> Rows:
    """What JAX and XLA compute again, beside what the forward pass computes."""
    is_clone, codes = attribution.passes.is_clone, attribution.passes.codes
    operations = attribution.scopes["operation"].to_pylist()
    # Newer XLA prints these within operands, without their names.
    is_told = ~attribution.derived.program.opcode.is_one_of("get-tuple-element")
    forward = is_told & (codes == FORWARD)
    recomputed = is_told & (codes == REMATERIALISED) & ~is_clone
    return [
        ("clones", "", int(is_clone.sum())),
        *_operations("forward", attribution.scope[forward], operations),
        *_operations("recomputed", attribution.scope[recomputed], operations),
    ]


def _loops_and_products(attribution: Attribution, is_random: Mask) -> Rows:
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
    types: dict[str, int] = {}
    for code, count in zip(
        *np.unique(program.shape.codes[products], return_counts=True), strict=True
    ):
        # Of a tuple with the kernel's workspace, the first element is the product.
        type_ = program.shape.texts[code].lstrip("(").split("[")[0]
        types[type_] = types.get(type_, 0) + int(count)
    return [
        ("loops", "", int(loops.sum())),
        *(("product", *row) for row in types.items()),
    ]


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


def _operations(trait: str, scope: Ints, operations: list[str]) -> Rows:
    """How many instructions belong to any operation, and to each costly one."""
    counts = np.bincount(scope[scope != NONE], minlength=len(operations)).tolist()
    costly = dict.fromkeys(_COSTLY, 0)
    for operation, count in zip(operations, counts, strict=True):
        if (name := _costly(operation)) is not None:
            costly[name] += count
    return [(trait, "", sum(counts)), *((trait, *row) for row in costly.items())]


@cache
def _costly(operation: str) -> str | None:
    return next((name for name in _COSTLY if operation.startswith(name)), None)


def _computed(program: NumberedProgram, values: pa.Table) -> Rows:
    """The bytes of each element type that instructions compute, copies left out."""
    row = values["instruction_id"].to_numpy()
    moves = np.append(program.opcode.is_one_of(*_MOVES), True)
    computes = ~moves[np.minimum(row, len(program))]
    types = values["element_type"].combine_chunks().dictionary_encode()
    type_, size = ints(types.indices), ints(values["logical_bytes"])
    known = computes & (type_ != NONE) & (size != NONE)
    type_, sums = summed(type_[known], size[known])
    names = types.dictionary.to_pylist()
    of_each = zip(type_.tolist(), sums.tolist(), strict=True)
    return [("computed", names[type_], sum_) for type_, sum_ in of_each]
