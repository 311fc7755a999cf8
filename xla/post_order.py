"""Post order of a graph: each node after those that it reads."""

from collections.abc import Iterable, Sequence


def post_order(ends: Iterable[int], operands: Sequence[Sequence[int]]) -> list[int]:
    """The nodes that a depth-first search from some ends reaches, the first operand first.

    Args:
        operands: by node, the nodes that it reads.
    """
    order: list[int] = []
    is_done = [False] * len(operands)
    for end in ends:
        stack = [(end, False)]
        while stack:
            node, is_open = stack.pop()
            if is_done[node]:
                continue
            if is_open:
                is_done[node] = True
                order.append(node)
                continue
            stack.append((node, True))
            stack += [(other, False) for other in reversed(operands[node]) if not is_done[other]]
    return order
