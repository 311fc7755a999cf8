"""Time and memory of the analysis grow in proportion to the program, however it is shaped."""

import time
import tracemalloc

import pytest

from memhouse.xla.liveness import analyse
from memhouse.xla.program import Header, Program
from memhouse.xla.sizes import value_sizes

pytestmark = pytest.mark.slow

ARRAY = "f32[16]{0}"
COUNTER = "s32[]"


def scheduled() -> Program:
    program = Program()
    program.header = Header(is_scheduled=True)
    return program


def add(program, opcode, *operands, shape=ARRAY, **fields) -> int:
    """Append an instruction to the last computation; by default it is the root."""
    row = len(program)
    program.add_instruction(f"{opcode}.{row}", opcode, shape, operands, row + 1, **fields)
    program.root[-1] = row
    return row


def begin(program, name: str) -> int:
    """Begin a computation of one parameter. Returns the parameter's row."""
    program.entry = program.add_computation(name)
    return add(program, "parameter", parameter_number=0)


def chain(count):
    """Each instruction reads the previous one."""
    program = scheduled()
    last = begin(program, "main")
    for _ in range(count):
        last = add(program, "negate", last)
    return program


def star(count):
    """All instructions read one argument, and one reads all."""
    program = scheduled()
    argument = begin(program, "main")
    rows = [add(program, "negate", argument) for _ in range(count)]
    add(program, "custom-call", *rows)
    return program


def bitcasts(count):
    """A value has many positions."""
    program = scheduled()
    last = begin(program, "main")
    for _ in range(count):
        last = add(program, "bitcast", last)
    return program


def elements(count):
    """A large tuple, whose elements are taken one by one."""
    program = scheduled()
    argument = begin(program, "main")
    shape = f"({', '.join([ARRAY] * count)})"
    every = add(program, "tuple", *[argument] * count, shape=shape)
    for number in range(count):
        add(program, "get-tuple-element", every, tuple_index=number)
    return program


def updates(count):
    """Each instruction updates the result of the previous one in place."""
    program = scheduled()
    last = begin(program, "main")
    for _ in range(count):
        last = add(program, "dynamic-update-slice", last, last)
    return program


def computations(count):
    """Each computation calls the previous one, so that they nest without a limit."""
    program = scheduled()
    begin(program, "computation.0")
    for number in range(1, count // 2):
        operand = begin(program, f"computation.{number}")
        row = add(program, "call", operand)
        program.calls[row] = [("to_apply", number - 1)]
    return program


def fusions(count):
    """Many fusions, each of its own computation, that update an operand in place."""
    program = scheduled()
    for number in range(count // 4):
        operand = begin(program, f"fused.{number}")
        add(program, "dynamic-update-slice", operand, operand)
    last = begin(program, "main")
    for number in range(count // 4):
        last = add(program, "fusion", last)
        program.calls[last] = [("calls", number)]
    return program


def loops(count):
    """Each loop carries the result of the previous one, and an array that all of them share."""
    shape = f"({ARRAY}, {ARRAY})"
    program = scheduled()

    def take(carry, number):
        return add(program, "get-tuple-element", carry, tuple_index=number)

    for number in range(count // 16):
        program.add_computation(f"condition.{number}")
        add(program, "parameter", shape=shape, parameter_number=0)
        add(program, "constant", shape="pred[]")
        program.add_computation(f"body.{number}")
        carry = add(program, "parameter", shape=shape, parameter_number=0)
        changed = add(program, "negate", take(carry, 0))
        add(program, "tuple", changed, take(carry, 1), shape=shape)
    shared = begin(program, "main")
    last = shared
    for number in range(count // 16):
        initial = add(program, "tuple", last, shared, shape=shape)
        loop = add(program, "while", initial, shape=shape)
        program.calls[loop] = [("condition", 2 * number), ("body", 2 * number + 1)]
        last = take(loop, 0)
    return program


def nested_loops(count):
    """Each loop is in the body of the next."""
    program = scheduled()
    begin(program, "body")
    for number in range(count // 4):
        program.add_computation(f"condition.{number}")
        add(program, "parameter", parameter_number=0)
        add(program, "constant", shape="pred[]")
        operand = begin(program, f"body.{number}")
        loop = add(program, "while", operand)
        inner = 0 if number == 0 else 2 * number
        program.calls[loop] = [("condition", 2 * number + 1), ("body", inner)]
    return program


def asynchronous(count):
    """An async-start with many updates, and many pairs."""
    inputs = f"(({ARRAY}), {ARRAY}, u32[])"
    program = scheduled()
    for number in range(count // 5):
        begin(program, f"async.{number}")
    last = begin(program, "main")
    for number in range(count // 5):
        last = add(program, "async-start", last, shape=inputs)
        program.calls[last] = [("calls", number)]
        if number:
            last = add(program, "async-done", last)
            continue
        for _ in range(count // 5):
            last = add(program, "async-update", last, shape=inputs)
        last = add(program, "async-done", last)
    return program


MAKERS = [
    chain,
    star,
    bitcasts,
    elements,
    updates,
    computations,
    fusions,
    loops,
    nested_loops,
    asynchronous,
]


def seconds(program):
    """The processor time of the analysis, the least of two tries."""
    measured = []
    for _ in range(2):
        begun = time.process_time()
        value_sizes(analyse(program).flow, "cpu")
        measured.append(time.process_time() - begun)
    return min(measured)


def peak_bytes(program):
    """The memory of the analysis at its peak."""
    tracemalloc.start()
    try:
        assert len(analyse(program).flow) > 0
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("make", MAKERS)
def test_ten_times_the_program_costs_about_ten_times_as_much(make):
    assert peak_bytes(make(20_000)) < 15 * peak_bytes(make(2_000))
    # A law that grows with the square takes a hundred times as long.
    assert seconds(make(100_000)) < 30 * seconds(make(10_000)) + 0.1


def test_a_million_instructions_take_seconds():
    assert seconds(chain(1_000_000)) < 20
