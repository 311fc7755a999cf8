"""Post order of a graph: each node after the nodes that it reads."""

from collections.abc import Iterable, Sequence


def post_order(starts: Iterable[int], operands: Sequence[Sequence[int]]) -> list[int]:
    """The nodes that a depth-first search from `starts` reaches, the first operand first.

    Args:
        operands: by node, the nodes that it reads.
    """
    order: list[int] = []
    is_done = [False] * len(operands)
    for start in starts:
        stack = [(start, False)]
        while stack:
            node, is_expanded = stack.pop()
            if is_done[node]:
                continue
            if is_expanded:
                is_done[node] = True
                order.append(node)
                continue
            stack.append((node, True))
            stack += [(other, False) for other in reversed(operands[node]) if not is_done[other]]
    return order
