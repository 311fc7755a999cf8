"""Instructions in post order: each after its operands, the first operand first.

XLA places values of equal size in this order, and the text is in the schedule's order.
"""

import numpy as np

from .numbered_program import Ints, NumberedProgram


def post_order(program: NumberedProgram, computations: Ints) -> Ints:
    """Each instruction's place in the post order of its computation; NONE outside of these.

    A computation comes before those that it calls: the text's order backwards. The search
    starts at every instruction that nobody uses, in the text's order.
    """
    place = np.full(len(program), -1)
    used = np.zeros(len(program), bool)
    used[program.operands] = True
    starts, operands = program.operand_start.tolist(), program.operands.tolist()
    seen = bytearray(len(program))
    count = 0
    for computation in reversed(computations.tolist()):
        first, stop = int(program.first[computation]), int(program.stop[computation])
        order: list[int] = []
        for top in (np.flatnonzero(~used[first:stop]) + first).tolist():
            stack = [top]
            while stack:
                row = stack[-1]
                if seen[row]:
                    stack.pop()
                    if seen[row] == 1:
                        seen[row] = 2
                        order.append(row)
                    continue
                seen[row] = 1
                below = operands[starts[row] : starts[row + 1]]
                stack += [operand for operand in reversed(below) if not seen[operand]]
        place[order] = np.arange(count, count + len(order))
        count += len(order)
    return place
