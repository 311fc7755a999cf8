"""The products of a scan's body that a checkpoint policy may save."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from math import isqrt, prod
from typing import Any

from ...xla.shapes import ArrayShape, padded_bytes, parse_shape
from ..catalogue import statement
from .array_size import dimensions
from .asked_program import Program
from .saved_residuals import Scan


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
    results = program.rows(statement("advise_body_results"), [scan.body]).to_pylist()
    needed = reach(
        sources, [row["instruction_id"] for row in results if row["place"] in scan.stack_places]
    )
    rows = program.rows(statement("advise_products")).to_pylist()
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
        for instruction in range(int(start), int(stop)):
            called = [c for each in graph.called[instruction].values() for c in each]
            if graph.opcode[instruction] not in ("fusion", "call"):
                called = []
            sources[instruction] = sources.get(instruction, []) + (
                [graph.root(each) for each in called] or graph.operands[instruction]
            )
            for each in called:
                waiting.append(each)
                for parameter, operand in zip(
                    graph.parameters(each), graph.operands[instruction], strict=True
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
