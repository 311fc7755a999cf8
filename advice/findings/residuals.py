"""What the forward pass saves for the backward pass, to be computed again."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from math import isqrt, prod
from typing import Any

import numpy as np

from ...queries.catalogue import statement
from ...schema.readable import human_bytes
from ...xla.shapes import ArrayShape, padded_bytes, parse_shape
from ..asked_program import Change, Piece, Program, least_saving, memory_on_chip, saving
from ..finding import Finding, Grade, Options
from . import listed

# The dimensions and the number of elements of an array, by its shape's text.


def dimensions(shape: str) -> tuple[int, ...]:
    """The dimensions of an array; of a tuple, those of its first array."""
    parsed = parse_shape(shape)
    while not isinstance(parsed, ArrayShape):
        if not parsed.elements:
            return ()
        parsed = parsed.elements[0]
    return parsed.dimensions


def elements(shape: str) -> int:
    """The number of elements of an array."""
    return prod(dimensions(shape))


# What a program saves for its backward pass, and the scans over layers that save it.

_FREE = frozenset(
    {
        *("broadcast_in_dim", "convert_element_type", "copy", "iota", "reshape", "squeeze"),
        *("expand_dims", "transpose", "rev", "slice", "dynamic_slice", "concatenate", "pad"),
        *("select_n", "ge", "gt", "le", "lt", "eq", "ne", "and", "or", "not"),
    }
)
_PRODUCTS = frozenset({"dot_general", "conv_general_dilated", "custom_call", "pallas_call"})
_SUMS = ("reduce_", "cum", "sort", "scatter", "gather", "top_k", "argmax", "while", "scan")
# JAX marks what a policy saves with this operation; policies save what is dear.
_SAVED_BY_POLICY = "reduce_precision"


class Cost(IntEnum):
    """What it takes to compute a residual again, its own operation alone; cheapest first."""

    free = 0
    elementwise = 1
    reduction = 2
    product = 3


@dataclass(frozen=True)
class Residual:
    """A tensor that the forward pass keeps for the backward pass.

    value_id: the largest value that holds it; value_ids: all values that hold it whole; part_ids:
    those that hold a part, such as one layer of a stack. layers: the number of results of its
    operation that are stacked in it. start_time, end_time: its life in all copies; idle_end_time:
    the first touch after its longest rest, which is when the backward pass first reads it.
    """

    residual_id: int
    value_id: int
    value_ids: frozenset[int]
    part_ids: frozenset[int]
    layers: int
    size_bytes: int
    shape: str
    operation: str
    cost: Cost
    source: str | None
    start_time: int
    end_time: int
    idle_end_time: int


@dataclass(frozen=True)
class Scan:
    """A loop of the forward pass that stacks residuals, and the loop that reads them back.

    forward: the first of the two loops. layers: the turns, the first dimension of each stack.
    body: the computation of a layer. carry_bytes: what is saved of that which a turn hands to the
    next; spare_bytes: what all stacks take but for the carry's. start_time, end_time: the body of
    the backward loop. stack_places: which parts of the forward loop's tuple are stacks.
    read_back: the values that live in the backward loop alone; again_bytes: the largest that it
    computes again already; paired_bytes: the most that two of its values at one time both take.
    source: the line of the loop.
    """

    forward: int
    body: str
    layers: int
    carry_bytes: int
    spare_bytes: int
    start_time: int
    end_time: int
    stacks: tuple[Residual, ...]
    stack_places: frozenset[int]
    read_back: frozenset[int]
    again_bytes: int
    paired_bytes: int
    source: str | None


def read_residuals(program: Program) -> list[Residual]:
    """The residuals of a program's memory space, the largest first."""
    rows = program.rows(statement("advise.residuals"), [program.layout.memory_space]).to_pylist()
    holders = _holders(program, rows)
    return [
        Residual(
            row["residual_id"],
            row["value_id"],
            *holders[row["residual_id"]],
            row["layers"],
            row["size_bytes"],
            row["shape"],
            row["operation"] or row["opcode"],
            cost_of(row["operation"] or row["opcode"]),
            row["source"],
            row["start_time"],
            row["end_time"],
            row["idle_end_time"],
        )
        for row in rows
    ]


def read_scans(program: Program, residuals: Iterable[Residual]) -> list[Scan]:
    """The scans of the forward pass that stack some of these residuals."""
    loops: dict[int, list[dict[str, Any]]] = {}
    for row in program.rows(statement("advise.loops")).to_pylist():
        loops.setdefault(row["instruction_id"], []).append(row)
    by_value = {value: each for each in residuals for value in each.value_ids}
    scans = []
    for loop, carried in loops.items():
        if carried[0]["loop_pass"] != "forward":
            continue
        changing = [row for row in carried if row["is_phi"] and dimensions(row["shape"])]
        held = {by_value[row["value_id"]] for row in changing if row["value_id"] in by_value}
        layers = _layers(held)
        backward = _backward_loop(loops, carried[0], held)
        if layers > 1 and backward:
            read_back = {row["value_id"] for row in backward}
            stacks = [
                stack
                for stack in held
                if dimensions(stack.shape)[0] == layers and stack.value_ids & read_back
            ]
            stacks.sort(key=lambda stack: stack.residual_id)
            scans.append(_scan(program, loop, changing, backward[0], layers, tuple(stacks)))
    return scans


def cost_of(operation: str) -> Cost:
    """What an operation of JAX costs, by its name."""
    if operation in _PRODUCTS or operation == _SAVED_BY_POLICY:
        return Cost.product
    if operation in _FREE:
        return Cost.free
    return Cost.reduction if operation.startswith(_SUMS) else Cost.elementwise


def _holders(
    program: Program, rows: list[dict[str, Any]]
) -> dict[int, tuple[frozenset[int], frozenset[int]]]:
    """Of each residual the values that hold all of it, and those that hold a part."""
    values = program.rows(
        'SELECT value_id, residual_id, shape FROM "values"'
        " WHERE module_id = $1 AND residual_id IS NOT NULL AND element_type IS NOT NULL"
    ).to_pylist()
    whole = {row["residual_id"]: elements(row["shape"]) for row in rows}
    found: dict[int, tuple[set[int], set[int]]] = {each: (set(), set()) for each in whole}
    for value in values:
        residual = value["residual_id"]
        if residual in whole:
            is_part = elements(value["shape"]) != whole[residual]
            found[residual][is_part].add(value["value_id"])
    return {
        residual: (frozenset(wholes), frozenset(parts))
        for residual, (wholes, parts) in found.items()
    }


def _backward_loop(
    loops: dict[int, list[dict[str, Any]]], forward: dict[str, Any], stacks: Iterable[Residual]
) -> list[dict[str, Any]]:
    """The later loop of the same computation that takes the most bytes of the stacks."""
    sizes = {value: stack.size_bytes for stack in stacks for value in stack.value_ids}
    best: list[dict[str, Any]] = []
    most = 0
    for carried in loops.values():
        head = carried[0]
        taken = sum(sizes.get(row["value_id"], 0) for row in carried)
        is_later = head["end_time"] > forward["end_time"]
        if is_later and head["computation"] == forward["computation"] and taken > most:
            best, most = carried, taken
    return best


def _layers(held: Iterable[Residual]) -> int:
    """The first dimension of most bytes that a loop stacks; 0 if it stacks nothing."""
    sizes: Counter[int] = Counter()
    for residual in held:
        if residual.layers > 1:
            sizes[dimensions(residual.shape)[0]] += residual.size_bytes
    return sizes.most_common(1)[0][0] if sizes else 0


def _scan(
    program: Program,
    loop: int,
    changing: list[dict[str, Any]],
    backward: dict[str, Any],
    layers: int,
    stacks: tuple[Residual, ...],
) -> Scan:
    stacked = {value for stack in stacks for value in stack.value_ids}
    parts = {value for stack in stacks for value in stack.part_ids}
    others = [
        row for row in changing if row["pass"] == "forward" and row["value_id"] not in stacked
    ]
    # What is stacked for other readers is an output of the scan. A batch of as many as the layers
    # looks like that too, but the scan stacks what it carries.
    saved = {dimensions(stack.shape) for stack in stacks}
    carry = [
        row
        for row in others
        if dimensions(row["shape"])[0] != layers or (layers, *dimensions(row["shape"])) in saved
    ] or others
    return Scan(
        loop,
        changing[0]["body"],
        layers,
        sum(_kept_bytes(row, layers, stacks) for row in carry),
        _spare_bytes([layers * elements(row["shape"]) for row in carry], stacks),
        backward["body_start_time"],
        backward["end_time"],
        stacks,
        frozenset(_place(row) for row in changing if row["value_id"] in stacked),
        _inner_values(program, backward),
        _made_again(program, backward),
        _paired_bytes(program, backward, parts),
        changing[0]["source"],
    )


def _kept_bytes(carry: dict[str, Any], layers: int, stacks: Iterable[Residual]) -> int:
    """What one layer of a carry takes if it is saved.

    XLA saves it converted where a layer begins with a conversion to a narrower type.
    """
    size = layers * elements(carry["shape"])
    converted = [
        stack.size_bytes // layers
        for stack in stacks
        if stack.operation == "convert_element_type" and elements(stack.shape) == size
    ]
    return min([int(carry["size_bytes"]), *converted])


def _spare_bytes(carried: Iterable[int], stacks: Iterable[Residual]) -> int:
    """What stacks take but for one of each carry, told by its number of elements."""
    sizes = [(elements(stack.shape), stack.size_bytes) for stack in stacks]
    for count in carried:
        same = [size for size in sizes if size[0] == count]
        if same:
            sizes.remove(max(same))
    return sum(size for _, size in sizes)


def _place(row: dict[str, Any]) -> int:
    return int(row["shape_index"].strip("{}").partition(",")[0])


def _inner_values(program: Program, loop: dict[str, Any]) -> frozenset[int]:
    layout = program.layout
    inside = (layout.start >= loop["body_start_time"]) & (layout.end < loop["end_time"])
    return frozenset(layout.value_id[inside].tolist())


def _paired_bytes(program: Program, loop: dict[str, Any], parts: Iterable[int]) -> int:
    """The most that two buffers of a loop's body both take at one time; no parts of stacks."""
    layout = program.layout
    inside = (layout.start >= loop["body_start_time"]) & (layout.end < loop["end_time"])
    # What the loop hands on shares its buffer with what lives before or after it.
    inside &= ~np.isin(layout.alias_set, layout.alias_set[~inside])
    inside &= ~np.isin(layout.value_id, np.fromiter(parts, np.int64))
    rows = np.flatnonzero(inside)
    rows = rows[np.argsort(-layout.size[rows], kind="stable")]
    start, end, sets = layout.start[rows], layout.end[rows], layout.alias_set[rows]
    for last in range(1, len(rows)):
        meets = (start[:last] <= end[last]) & (start[last] <= end[:last])
        if (meets & (sets[:last] != sets[last])).any():
            return int(layout.size[rows[last]])
    return 0


def _made_again(program: Program, backward: dict[str, Any]) -> int:
    (row,) = program.rows(
        statement("advise.made_again"),
        [program.layout.memory_space, backward["body_start_time"], backward["end_time"]],
    ).to_pylist()
    return int(row["size_bytes"])


# The products of a scan's body that a checkpoint policy may save.


@dataclass(frozen=True)
class Product:
    """A matrix product or convolution of one layer.

    is_batched: it has batch dimensions, so that `dots_with_no_batch_dims_saveable` does not save
    it. stack_bytes: what it takes if it is saved for all layers. work: multiplications for each
    element. is_result: no other product of its line is computed from it.
    """

    instruction_id: int
    source: str | None
    is_batched: bool
    stack_bytes: int
    work: int
    is_result: bool


def scan_products(program: Program, scan: Scan) -> list[Product]:
    """The products that the backward pass needs: all but those that only make the carry.

    Needed is what a stack is computed from, and what the backward pass computes again.
    """
    sources = read_body(program, scan)
    results = program.rows(statement("advise.body_results"), [scan.body]).to_pylist()
    needed = reach(
        sources, [row["instruction_id"] for row in results if row["place"] in scan.stack_places]
    )
    rows = program.rows(statement("advise.products")).to_pylist()
    again = {_key(row) for row in rows if row["pass"] == "rematerialised"}
    found: dict[int, list[dict[str, Any]]] = {}
    for row in rows:
        instruction = row["instruction_id"]
        if instruction in needed or (instruction in sources and _key(row) in again):
            found.setdefault(instruction, []).append(row)
    lines = {instruction: operands[0]["source"] for instruction, operands in found.items()}
    feeding = {
        before
        for instruction, line in lines.items()
        for before in reach(sources, sources.get(instruction, ()))
        if lines.get(before) == line
    }
    return [
        _product(operands, scan.layers, operands[0]["instruction_id"] not in feeding)
        for operands in found.values()
        if len(operands) == 2
    ]


def read_body(program: Program, scan: Scan) -> dict[int, list[int]]:
    """What each instruction of a layer is computed from, through fusions."""
    graph, sources = program.graph, dict[int, list[int]]()
    waiting = [graph.program.computation_names.index(scan.body)]
    for computation in waiting:
        start, stop = graph.program.first[computation], graph.program.stop[computation]
        for instruction in range(start, stop):
            called = graph.called(instruction)
            if graph.opcode[instruction] not in ("fusion", "call"):
                called = []
            sources[instruction] = sources.get(instruction, []) + (
                [graph.program.root[each] for each in called] or [*graph.operands[instruction]]
            )
            for each in called:
                waiting.append(each)
                for parameter, operand in zip(
                    graph.program.parameters(each), graph.operands[instruction], strict=True
                ):
                    sources.setdefault(parameter, []).append(operand)
    return sources


def reach(sources: dict[int, list[int]], starts: Iterable[int]) -> set[int]:
    """All that these instructions are computed from, and they."""
    reached: set[int] = set()
    ahead = list(starts)
    while ahead:
        instruction = ahead.pop()
        if instruction not in reached:
            reached.add(instruction)
            ahead += sources.get(instruction, ())
    return reached


def _product(operands: list[dict[str, Any]], layers: int, is_result: bool) -> Product:
    head = operands[0]
    shape = head["rounded_shape"] or head["shape"]
    result = dimensions(shape)
    left, right = (dimensions(operand["operand_shape"]) for operand in operands)
    return Product(
        head["instruction_id"],
        head["source"],
        head["operation"] != "dot_general" or _is_batched(result, left, right),
        layers * _bytes(shape),
        max(_leftover(result, left, right), default=1),
        is_result,
    )


def _bytes(shape: str) -> int:
    """What a product takes; of a kernel's tuple, its first array, as others are workspace."""
    parsed = parse_shape(shape)
    return padded_bytes(parsed if isinstance(parsed, ArrayShape) else parsed.elements[0])


def _key(row: dict[str, Any]) -> tuple[str | None, tuple[int, ...]]:
    return row["source"], dimensions(row["shape"])


def _is_batched(result: tuple[int, ...], left: tuple[int, ...], right: tuple[int, ...]) -> bool:
    """Whether dimensions are in both factors and in the result, so that none sums over them.

    Of two factors, the dimensions that are not in the result are those summed over, twice each,
    and one more of each batch dimension. Where XLA merged or split dimensions, the number of
    elements decides in the same way.
    """
    if _sizes(result) - _sizes(left) - _sizes(right):
        square = prod(left) * prod(right) // prod(result)
        return isqrt(square) ** 2 != square
    over = _leftover(result, left, right)
    odd = sum(count % 2 for count in over.values())
    if odd or sum(over.values()) <= 2:
        return odd > 0
    common = _sizes(left) & _sizes(right) & _sizes(result)
    return sum(common.values()) > 1


def _leftover(
    result: tuple[int, ...], left: tuple[int, ...], right: tuple[int, ...]
) -> Counter[int]:
    return _sizes(left) + _sizes(right) - _sizes(result)


def _sizes(dimensions: tuple[int, ...]) -> Counter[int]:
    return Counter(size for size in dimensions if size > 1)


# A scan whose body is checkpointed: the change of lives, how to write it, how sure it is.

# Measured on recompiled programs: docs/advise.md.
_TOLERANCE = 0.10


def checkpointed(scan: Scan, kept: Iterable[Product], products: Iterable[Product]) -> Change:
    """The stacks gone: the carry and the kept products stacked instead, one layer made again.

    What the backward loop takes out of the stacks goes too. There the largest residual of one
    layer is live instead, or the largest of all products where that is smaller, because XLA
    fuses elementwise work with what reads it; only what the loop does not make again already.
    Nothing is live in addition where two values of that size are now, such as the gradients of
    attention's scores before and after the softmax: one of them comes to take the room. Of a loop
    within the layer all is live that it stacks.
    """
    start = min(stack.start_time for stack in scan.stacks)
    sizes = [scan.layers * scan.carry_bytes, *(product.stack_bytes for product in kept)]
    pieces = [Piece(place, size, start, scan.end_time) for place, size in enumerate(sizes)]
    inner = sum(stack.size_bytes for stack in scan.stacks if stack.layers > scan.layers)
    largest = max(stack.size_bytes for stack in scan.stacks)
    product = max((product.stack_bytes for product in products), default=largest)
    plain = min(largest, product) // scan.layers
    needed = max(inner // scan.layers, plain if plain > scan.paired_bytes else 0)
    more = max(0, needed - scan.again_bytes)
    pieces.append(Piece(len(sizes), more, scan.start_time, scan.end_time))
    gone = (stack.value_ids | (stack.part_ids & scan.read_back) for stack in scan.stacks)
    return Change(gone=frozenset().union(*gone), pieces=tuple(pieces))


def checkpoint_text(kept: Sequence[Product], products: Sequence[Product]) -> str:
    """What to write so that of a scan's products these are kept."""
    if not kept:
        return "jax.lax.scan(jax.checkpoint(body), ...); in Flax nn.remat"
    unbatched = [product for product in products if not product.is_batched]
    names: dict[str, list[Product]] = {}
    if len(kept) == len(products):
        policy = "dots_saveable"
    elif set(kept) == set(unbatched):
        policy = "dots_with_no_batch_dims_saveable"
    else:
        for product in kept:
            # What has no line cannot be named, and is computed again.
            if product.source is not None:
                names.setdefault(product.source, []).append(product)
        quoted = ", ".join(f'"{_name(line)}"' for line in names)
        policy = f"save_only_these_names({quoted})"
    wrapped = f"jax.checkpoint(body, policy=jax.checkpoint_policies.{policy})"
    return f"jax.lax.scan({wrapped}, ...)" + "".join(
        f', and jax.ad_checkpoint.checkpoint_name(product, "{_name(line)}") around'
        f" {'the product' if len(named) == 1 else f'each of the {len(named)} products'} at {line}"
        for line, named in names.items()
    )


def _policy(kept: Sequence[Product], products: Sequence[Product]) -> tuple[str, ...]:
    """How a keyword such as `remat` may name what is kept."""
    if not kept:
        return ("full",)
    if len(kept) == len(products):
        return "dots", "dots_saveable"
    if set(kept) == {product for product in products if not product.is_batched}:
        return "dots_no_batch", "dots_with_no_batch_dims_saveable"
    return ()


def told_as(program: Program, saved: int) -> dict[str, Any]:
    """The grade of a scan's finding, and the figures that go with it.

    On chip there is room for bytes that no replay can foresee: the range is told where they are
    more than the tolerance of the new peak, or than half the saving. Off TPU only the order of
    findings is known.
    """
    if program.platform != "tpu":
        return {"grade": Grade.fact}
    on_chip = memory_on_chip(program)
    if on_chip > min(saved / 2, _TOLERANCE * (program.layout.peak_bytes - saved)):
        return {
            "grade": Grade.between,
            "saving_bytes": saved,
            "low_bytes": saved - on_chip,
            "high_bytes": saved + on_chip,
        }
    return {
        "grade": Grade.expected,
        "saving_bytes": saved,
        "low_bytes": saved,
        "high_bytes": saved,
        "tolerance": _TOLERANCE,
    }


def _name(line: str) -> str:
    """A name for what a line computes: the line's number."""
    return f"line{line.rpartition(':')[2]}"


# What checkpoints in the body of a scan would save: residuals computed again, layer by layer.

_KEPT_LINES = 3
# A line's products are worth naming if they take less than this part of what the scan saves.
_SMALL = 0.2


@listed(3, computes_again=True)
def rematerialise(program: Program) -> list[Finding]:
    """For each scan: all of its body computed again, and the policies that keep products.

    On TPU the figure is expected within 10 %, and told only where it is more than the memory on
    chip, because what fits there moves with any change. Elsewhere only the order of the findings
    is known, so that they have no figure.
    """
    found = []
    for scan in worthwhile_scans(program):
        products = scan_products(program, scan)
        told = []
        for kept in ways_to_keep(scan, products):
            change = checkpointed(scan, kept, products)
            saved = saving(program.layout, change)
            if saved > least_saving(program):
                told.append((saved, kept, change))
        told.sort(key=lambda way: -way[0])
        found += [
            _rematerialised(program, scan, kept, products, change, saved)
            for saved, kept, change in told
        ]
    return found


def worthwhile_scans(program: Program) -> list[Scan]:
    """The scans that save more than their carry and what a finding must save at least."""
    scans = read_scans(program, read_residuals(program))
    return [scan for scan in scans if scan.spare_bytes > least_saving(program)]


def ways_to_keep(scan: Scan, products: Sequence[Product]) -> list[Sequence[Product]]:
    """The products that a policy keeps, a row for each policy that differs.

    None of them; those without batch dimensions; all; those of a single source line, for the few
    lines that save the most work and take few bytes.
    """
    stacked = sum(stack.size_bytes for stack in scan.stacks)
    lines: dict[str, list[Product]] = {}
    for product in products:
        if product.source is not None and product.is_result:
            lines.setdefault(product.source, []).append(product)
    small = [kept for kept in lines.values() if _stack_bytes(kept) < _SMALL * stacked]
    small.sort(key=lambda kept: -sum(product.work for product in kept) / len(kept))
    unbatched = [product for product in products if not product.is_batched]
    ways: dict[frozenset[Product], Sequence[Product]] = {}
    for way in ([], unbatched, products, *small[:_KEPT_LINES]):
        ways.setdefault(frozenset(way), way)
    return list(ways.values())


def _rematerialised(
    program: Program,
    scan: Scan,
    kept: Sequence[Product],
    products: Sequence[Product],
    change: Change,
    saved: int,
) -> Finding:
    figure = told_as(program, saved)
    is_told = "saving_bytes" in figure
    stacked = human_bytes(sum(stack.size_bytes for stack in scan.stacks))
    carry = human_bytes(scan.layers * scan.carry_bytes)
    cheap = sum(stack.size_bytes for stack in scan.stacks if stack.cost < Cost.product)
    keeps = f", but keep {human_bytes(_stack_bytes(kept))} of products" if kept else ""
    order = "" if is_told else "; in the order of what they save, which is not estimated"
    return Finding(
        kind="residuals in a scan",
        title=f"compute the layers of the scan again{keeps}",
        write=checkpoint_text(kept, products),
        why=f"{len(scan.stacks)} stacks of {scan.layers} layers take {stacked}, of which"
        f" {human_bytes(cheap)} are not the output of a matrix product; the carry stays saved,"
        f" {carry}{order}",
        value_ids=tuple(stack.value_id for stack in scan.stacks),
        source=scan.source,
        change=change if is_told else None,
        choice=f"scan at {scan.forward}",
        options=Options(values=_policy(kept, products)),
        **figure,
    )


def _stack_bytes(kept: Iterable[Product]) -> int:
    return sum(product.stack_bytes for product in kept)


# What checkpoints around unrolled layers would save, where XLA keeps them: on TPU.

# A layer hands its result to the next by an addition, in a network with residual connections.
_CARRIES = frozenset({"add", "add_any"})
# A part of an argument, such as a layer's weights, is not computed.
_PARTS = frozenset({"slice", "dynamic_slice", "squeeze"})
# The line, operation and shape of a residual.
_Key = tuple[str | None, str, str]


# A bound that is a smaller part of the peak is not worth a line.
_BOUND = 0.1


@listed(4, computes_again=True)
def unrolled(program: Program) -> list[Finding]:
    """At most one finding: each layer computed again in the backward pass, with the bytes' range.

    XLA for CPU of JAX 0.10 computes unrolled checkpoints only once, so that they save nothing;
    that of JAX 0.12 does not. The dump does not tell which it is: a bound. On TPU what fits into
    the memory on chip moves, so that the range is twice as wide as that memory.
    """
    is_bound = program.platform == "cpu"
    layers = repeated_layers(program) if is_bound or program.platform == "tpu" else []
    dropped = [residual for layer in layers for residual in layer]
    sizes = [sum(residual.size_bytes for residual in layer) for layer in layers]
    on_chip = memory_on_chip(program)
    if not layers or sum(sizes) <= max(on_chip, *sizes):
        return []
    gone = frozenset(value for residual in dropped for value in residual.value_ids)
    change = Change(gone, pieces=() if is_bound else tuple(_recomputed(layers)))
    saved = saving(program.layout, change)
    if saved <= max(least_saving(program), _BOUND * program.layout.peak_bytes * is_bound):
        return []
    why = "XLA of JAX 0.10 computes them once all the same and saves nothing, that of 0.12 again"
    if not is_bound:
        why = f"XLA lays out the {human_bytes(on_chip)} on chip anew, hence the range"
    largest = sorted(dropped, key=lambda residual: -residual.size_bytes)
    return [
        Finding(
            kind="residuals, unrolled",
            title=f"compute each of the {len(layers)} layers again in the backward pass",
            grade=Grade.at_most if is_bound else Grade.between,
            write="jax.checkpoint(layer) instead of the function of a layer; in Flax nn.remat",
            why=f"{human_bytes(sum(sizes))} are saved for the backward pass in the layers, at most"
            f" {human_bytes(max(sizes))} in one; {why}",
            value_ids=tuple(residual.value_id for residual in largest),
            source=largest[0].source,
            saving_bytes=saved,
            low_bytes=saved - on_chip,
            high_bytes=saved + on_chip,
            change=change,
            choice="residuals that are not stacked",
            options=Options(values=_policy([], [])),
        )
    ]


def repeated_layers(program: Program) -> list[list[Residual]]:
    """The residuals that each layer of an unrolled network would drop, layer by layer.

    Layers are told from residuals of one line, operation and shape that repeat, the others by
    their time. What a layer hands to the next stays saved: its last sum. None where the layers
    have no such sum.
    """
    residuals = read_residuals(program)
    stacked = {stack for scan in read_scans(program, residuals) for stack in scan.stacks}
    groups: dict[_Key, list[Residual]] = {}
    for residual in residuals:
        if residual not in stacked and residual.operation not in _PARTS:
            groups.setdefault(_kind_of(residual), []).append(residual)
    repeated = [group for group in groups.values() if len(group) > 1]
    count = _repetitions(repeated)
    layers: list[list[Residual]] = [[] for _ in range(count)]
    for group in repeated:
        if count and len(group) % count == 0:
            in_order = sorted(group, key=lambda residual: residual.start_time)
            for rank, residual in enumerate(in_order):
                layers[rank * count // len(group)].append(residual)
    spans = [(layer[0].start_time, layer[-1].start_time) for layer in map(_in_time, layers)]
    for group in repeated:
        for residual in group if count and len(group) % count else ():
            layers[_nearest(spans, residual.start_time)].append(residual)
    carry = _carry(layers)
    return (
        [[each for each in layer if _kind_of(each) != carry] for layer in layers] if carry else []
    )


def _kind_of(residual: Residual) -> _Key:
    return residual.source, residual.operation, residual.shape.partition("{")[0]


def _in_time(layer: Iterable[Residual]) -> list[Residual]:
    return sorted(layer, key=lambda residual: residual.start_time)


def _repetitions(repeated: Iterable[Sequence[Residual]]) -> int:
    """How often most bytes repeat; 0 if nothing does."""
    weights: Counter[int] = Counter()
    for group in repeated:
        weights[len(group)] += sum(residual.size_bytes for residual in group)
    return weights.most_common(1)[0][0] if weights else 0


def _nearest(spans: Sequence[tuple[int, int]], time: int) -> int:
    return min(
        range(len(spans)), key=lambda layer: max(spans[layer][0] - time, time - spans[layer][1])
    )


def _carry(layers: Iterable[Iterable[Residual]]) -> _Key | None:
    """What most layers compute as their last sum."""
    last: Counter[_Key] = Counter()
    for layer in layers:
        sums = [residual for residual in _in_time(layer) if residual.operation in _CARRIES]
        if sums:
            last[_kind_of(sums[-1])] += 1
    return last.most_common(1)[0][0] if last else None


def _recomputed(layers: Iterable[Iterable[Residual]]) -> Iterable[Piece]:
    """Each layer's residuals, live again from the first that the backward pass reads."""
    place = 0
    for layer in filter(None, map(list, layers)):
        start = min(residual.idle_end_time for residual in layer)
        for residual in layer:
            yield Piece(place, residual.size_bytes, start, residual.end_time)
            place += 1
