"""Random scheduled HLO texts, valid in form, for tests that hold the engine against the rules.

The texts look as XLA prints them: layouts, `/*index=5*/` comments, metadata, tiles as on a TPU.
XLA itself would put copies where values that share memory are in each other's way. Half of the
programs do so too (`careful`); the others do not, as the rules must give an answer there as well.
"""

from dataclasses import dataclass, field

from hypothesis import strategies as st

# Element type and dimensions; the layout is put on by the style.
VECTOR, PART, MATRIX, NUMBER = "f32[8]", "f32[4]", "f32[4,2]", "f32[]"
COUNT, FLAG, TOKEN = "s32[]", "pred[]", "token[]"
ARRAYS = (VECTOR, PART, MATRIX)
LEAVES = (*ARRAYS, COUNT, FLAG)
SAME_SIZE = {VECTOR: MATRIX, MATRIX: VECTOR}
PLAIN = {VECTOR: "{0}", PART: "{0}", MATRIX: "{1,0}"}
TILED = {
    VECTOR: "{0:T(128)}",
    PART: "{0:T(128)}",
    MATRIX: "{1,0:T(8,128)}",
    NUMBER: "{:T(128)}",
    COUNT: "{:T(128)}",
    FLAG: "{:T(512)}",
    "u32[]": "{:S(2)}",
}
FAST = {
    False: {VECTOR: "{0:S(1)}", PART: "{0:S(1)}", MATRIX: "{1,0:S(1)}"},
    True: {VECTOR: "{0:T(128)S(1)}", PART: "{0:T(128)S(1)}", MATRIX: "{1,0:T(8,128)S(1)}"},
}
METADATA = (
    "",
    ', metadata={op_name="jit(f)/while/body/add" stack_frame_id=1}',
    ', metadata={op_name="jit(f)/f(x, calls=%y, to_apply=%z)/{{}: (0, {})}"}',
    ', backend_config={"aliasing_operands":{"lists":[{"indices":["0","1"]}]}}',
)
# What JAX and XLA call instructions: all kinds of names, of all passes, and lines of source.
ARGUMENT_NAMES = ("x", "p['w']", "p['blocks'][1]")
OP_NAMES = (
    *("", "", "", "", *ARGUMENT_NAMES[:2], "broadcast.92"),
    *("jit(f)/sub", "jit(f)/jvp()/mul", "jit(f)/transpose(jvp())/mul", "jit(f)/jvp(up)/exp"),
    *("jit(f)/transpose(jvp(up))/dot_general", "jit(f)/jit(main)/dot_general"),
    *("jit(f)/while/body/jvp(up)/mul", "jit(f)/while/body/transpose(jvp(up))/mul"),
    *("jit(f)/while/body/dynamic_slice", "jit(f)/checkpoint/rematted_computation/down/dot"),
    *("/add", "body/mul", "checkpoint/rematted_computation/sin", "transpose(jvp(up))/neg"),
    *("jit(f)/up/mul;jit(f)/down/add", "jit(f)/down/(mul:add)", "up/mul;down/add"),
    *("jit(f)/while", "jit(f)/jvp()/closed_call", "jit(f)/shard_map", "while"),
)
STEPS = 4
DEPTH = 2


def is_flat(shape):
    """Whether a shape is an array or a tuple of arrays."""
    return not isinstance(shape, tuple) or not any(isinstance(part, tuple) for part in shape)


def listed(parts):
    """Parts with commas between them, every fifth of them numbered."""
    numbered = (f"/*index={i}*/{p}" if i and i % 5 == 0 else p for i, p in enumerate(parts))
    return ", ".join(numbered)


@dataclass
class Writer:
    """The module under construction."""

    draw: object
    tiled: bool
    careful: bool
    typed: bool
    percent: str
    # Whether the instructions have names of JAX's, and move more than others do.
    named: bool = False
    done: list[str] = field(default_factory=list)
    names: dict[str, int] = field(default_factory=dict)

    def name(self, base):
        """A name that no other instruction or computation has."""
        count = self.names[base] = self.names.get(base, -1) + 1
        return f"{base}.{count}" if count else base

    def metadata(self, text, opcode, is_argument):
        """What stands after an instruction: its name, its line."""
        if not self.named:
            return self.choose(METADATA[: 3 if "config" in text else 4])
        op_name = self.choose(ARGUMENT_NAMES if is_argument and self.chance() else OP_NAMES)
        parts = [f'op_name="{op_name}"'.replace("'", "\\'")] if op_name else []
        if self.number(0, 2) == 0:
            parts.append(f'source_file="/a/zoo.py" source_line={self.number(1, 4)}')
        return f", metadata={{{' '.join(parts)}}}" if parts else ""

    def show(self, shape, layout=True):
        """A shape as text."""
        if isinstance(shape, tuple):
            return f"({listed(self.show(part, layout) for part in shape)})"
        base = shape.removesuffix("@fast")
        if not layout:
            return base
        if base != shape:
            return base + FAST[self.tiled][base]
        return base + (TILED if self.tiled else PLAIN).get(base, "")

    def choose(self, options):
        """One of several."""
        return self.draw(st.sampled_from(list(options)))

    def chance(self):
        """Yes or no."""
        return self.draw(st.booleans())

    def number(self, low, high):
        """A number between two, both included."""
        return self.draw(st.integers(low, high))


@dataclass
class Body:
    """One computation under construction."""

    writer: Writer
    depth: int
    parameters: list
    lines: list[tuple[str, str]] = field(default_factory=list)
    # What later instructions may read: names with their shapes.
    seen: list[tuple[str, object]] = field(default_factory=list)
    shapes: dict[str, object] = field(default_factory=dict)
    # Starts whose dones are still to come: functions that write them.
    open: list = field(default_factory=list)
    waiting: list[int] = field(default_factory=list)
    arguments: dict[int, str] = field(default_factory=dict)
    # The names that some instruction reads.
    read: set[str] = field(default_factory=set)
    result: str = ""
    # Whether nothing may stand here that the root does not need.
    exact: bool = False
    # Whether the result may be a tuple of tuples.
    nested: bool = True

    def __post_init__(self):
        self.waiting = [i for i in range(len(self.parameters)) if self.writer.chance()]
        for number in range(len(self.parameters)):
            if number not in self.waiting:
                self.parameter(number)

    def emit(self, opcode, shape, operands=(), attributes="", inside=None, seen=True, name=None):
        """Write one instruction, and give its name."""
        writer = self.writer
        self.read.update(operands)
        again = (
            ".remat" if writer.named and opcode != "parameter" and writer.number(0, 19) == 0 else ""
        )
        name = writer.name((name or opcode) + again)
        read = [writer.percent + operand for operand in operands]
        if writer.typed:
            types = (writer.show(self.shapes[operand]) for operand in operands)
            read = [f"{kind} {text}" for kind, text in zip(types, read, strict=True)]
        inside = listed(read) if inside is None else inside
        text = f"{writer.percent}{name} = {writer.show(shape)} {opcode}({inside}){attributes}"
        is_argument = opcode == "parameter" and self.depth == 0
        self.lines.append((name, text + writer.metadata(text, opcode, is_argument)))
        self.shapes[name] = shape
        if seen:
            self.seen.append((name, shape))
        return name

    def parameter(self, number):
        """Write a parameter, early or late."""
        base = "Arg" if self.depth == 0 else "param"
        shape = self.parameters[number]
        self.arguments[number] = self.emit("parameter", shape, inside=str(number), name=base)
        if number in self.waiting:
            self.waiting.remove(number)
        return self.arguments[number]

    def want(self, shape, seen=True):
        """Something of this shape: what is there already, or something new."""
        there = [name for name, other in self.seen if other == shape]
        if there and self.writer.number(0, 4):
            return self.writer.choose(there)
        if isinstance(shape, tuple):
            return self.emit("tuple", shape, [self.want(part) for part in shape], seen=seen)
        if shape == TOKEN:
            return self.emit("after-all", shape, seen=False)
        if shape in (COUNT, FLAG, NUMBER):
            literal = "false" if shape == FLAG else "0"
            return self.emit("constant", shape, inside=literal, seen=seen)
        return self.emit("iota", shape, (), ", iota_dimension=0", seen=seen)

    def own(self, shape):
        """Something of this shape that nobody else reads, where the program is careful."""
        if not self.writer.careful:
            return self.want(shape)
        if isinstance(shape, tuple):
            return self.emit("tuple", shape, [self.own(part) for part in shape], seen=False)
        return self.emit("copy", shape, [self.want(shape)], seen=False)

    def step(self):
        """Write one or several instructions of a kind."""
        if self.waiting and self.writer.chance():
            self.parameter(self.writer.choose(self.waiting))
        if self.open and self.writer.chance():
            self.open.pop(self.writer.number(0, len(self.open) - 1))()
        steps = STEPS_OF_BODIES if self.depth < DEPTH else FLAT_STEPS
        if self.writer.named:
            steps = (*steps, *MOVING_STEPS)
        self.writer.choose(steps)(self)

    def close(self, base, result=None, entry=False):
        """Write the root, what is still open, and the braces; give the computation's name."""
        writer = self.writer
        for number in list(self.waiting):
            self.parameter(number)
        for done in self.open:
            done()
        root = self.result = self.root(result)
        if not self.exact and writer.number(0, 5) == 0:
            elementwise(self)
        name = writer.name(base)
        lines = [f"  {'ROOT ' if line == root else ''}{text}" for line, text in self.lines]
        parts = []
        for number, shape in enumerate(self.parameters):
            parts.append(f"{self.arguments[number]}: {writer.show(shape, layout=False)}")
        gives = writer.show(self.shapes[root], layout=False)
        head = f"{writer.percent}{name} ({listed(parts)}) -> {gives} {{"
        lines = [("ENTRY " if entry else "") + head, *lines, "}"]
        writer.done.append("\n".join(lines))
        return name

    def root(self, shape):
        """The instruction that the computation gives back."""
        if shape is None:
            there = [x for x in self.seen if self.nested or is_flat(x[1])]
            name, shape = self.writer.choose(there)
            if self.writer.chance():
                return name
            there = [x for x in there if self.nested or not isinstance(x[1], tuple)]
            picked = [self.writer.choose(there) for _ in range(self.writer.number(0, 6))]
            return self.emit("tuple", tuple(s for _, s in picked), [n for n, _ in picked])
        if self.writer.careful and not isinstance(shape, tuple):
            return self.own(shape)
        if isinstance(shape, tuple) and self.parameters == [shape] and self.writer.chance():
            return self.emit("tuple", shape, [self.kept(shape, i) for i in range(len(shape))])
        if isinstance(shape, tuple):
            return self.own(shape)
        return self.want(shape)

    def kept(self, shape, number):
        """An element of the carry, as it came or made anew."""
        if self.writer.chance():
            return self.own(shape[number])
        return element(self, self.arguments[0], number)


# Steps without other computations.


def element(body, name, number):
    """Take an element out of a tuple."""
    shape = body.shapes[name][number]
    return body.emit("get-tuple-element", shape, [name], f", index={number}")


def elementwise(body):
    shape = body.writer.choose(ARRAYS)
    body.emit("add", shape, [body.want(shape), body.want(shape)])


def elementwise_to_fast(body):
    shape = body.writer.choose(ARRAYS)
    body.emit("negate", shape + "@fast", [body.want(shape)])


def make_tuple(body):
    picked = [body.writer.choose(LEAVES) for _ in range(body.writer.number(0, 7))]
    body.emit("tuple", tuple(picked), [body.want(shape) for shape in picked])


def nested_tuple(body):
    picked = [body.writer.choose(body.seen) for _ in range(body.writer.number(1, 3))]
    if picked:
        body.emit("tuple", tuple(s for _, s in picked), [n for n, _ in picked])


def take_element(body):
    tuples = [name for name, shape in body.seen if isinstance(shape, tuple) and shape]
    if tuples:
        name = body.writer.choose(tuples)
        element(body, name, body.writer.number(0, len(body.shapes[name]) - 1))


def copy(body):
    name, shape = body.writer.choose(body.seen)
    body.emit("copy", shape, [name])


def bitcast(body):
    shape = body.writer.choose(SAME_SIZE)
    body.emit("bitcast", SAME_SIZE[shape], [body.want(shape)])


def barrier(body):
    name, shape = body.writer.choose(body.seen)
    opcode = body.writer.choose(["opt-barrier", "add-dependency", "domain"])
    if opcode == "opt-barrier":
        body.emit(opcode, shape, [name])
    elif opcode == "add-dependency":
        body.emit(opcode, shape, [name, body.want(TOKEN)])
    else:
        entry = ', domain={kind="sharding", entry={replicated}, exit={maximal device=0}}'
        body.emit(opcode, shape, [name], entry)


def update(body):
    operands = [body.own(VECTOR), body.want(PART), body.want(COUNT)]
    body.emit("dynamic-update-slice", VECTOR, operands)


def set_size(body):
    operands = [body.own(VECTOR), body.want(COUNT)]
    body.emit("set-dimension-size", VECTOR, operands, ", dimensions={0}")


def custom_call(body):
    """A custom call that writes into some of its operands."""
    picked = [body.writer.choose(ARRAYS) for _ in range(body.writer.number(1, 3))]
    operands = [body.own(shape) for shape in picked]
    shape, pairs = picked[0], "{}: (0, {})"
    if body.writer.chance():
        shape = (*picked, COUNT)
        numbers = [i for i in range(len(picked)) if body.writer.chance()] or [0]
        pairs = ", ".join(f"{{{i}}}: ({i}, {{}})" for i in numbers)
    aliasing = f', custom_call_target="f", output_to_operand_aliasing={{{pairs}}}'
    body.emit("custom-call", shape, operands, aliasing)


def rearrange(body):
    """What changes an array's form, or repeats, cuts or joins it."""
    kind = body.writer.choose(
        ["convert", "reshape", "broadcast", "slice", "halves", "join", "fill"]
    )
    if kind == "convert":
        body.emit("convert", VECTOR, [body.want(VECTOR)])
    elif kind == "reshape":
        shape = body.writer.choose(SAME_SIZE)
        body.emit("reshape", SAME_SIZE[shape], [body.want(shape)])
    elif kind == "broadcast":
        body.emit("broadcast", MATRIX, [body.want(PART)], ", dimensions={0}")
    elif kind == "slice":
        start = body.writer.number(0, 4)
        body.emit("slice", PART, [body.want(VECTOR)], f", slice={{[{start}:{start + 4}]}}")
    elif kind == "halves":
        body.emit("concatenate", VECTOR, [body.want(PART), body.want(PART)], ", dimensions={0}")
    elif kind == "join":
        target = ', custom_call_target="ConcatBitcast"'
        body.emit("custom-call", VECTOR, [body.want(PART), body.want(PART)], target)
    elif body.writer.chance():
        body.emit("broadcast", VECTOR, [body.want(NUMBER)], ", dimensions={}")
    else:
        body.emit("custom-call", VECTOR, [], ', custom_call_target="AllocateBuffer"')


def dynamic_slice(body):
    sizes = ", dynamic_slice_sizes={4}"
    body.emit("dynamic-slice", PART, [body.want(VECTOR), body.want(COUNT)], sizes)


def collective(body):
    """A collective of one operand or of two that is done at once."""
    opcode = body.writer.choose(["all-reduce", "all-to-all", "collective-permute"])
    count = body.writer.number(1, 2) if opcode != "collective-permute" else 1
    operands = [body.own(VECTOR) for _ in range(count)]
    attributes = ", channel_id=1, replica_groups={}"
    if opcode == "all-reduce":
        attributes += f", to_apply={body.writer.percent}{region(body)}"
    body.emit(opcode, VECTOR if count == 1 else (VECTOR,) * count, operands, attributes)


def copy_start(body):
    shape = body.writer.choose(ARRAYS)
    far = shape + "@fast" if body.writer.chance() else shape
    start = body.emit("copy-start", (far, shape, "u32[]"), [body.want(shape)], seen=False)
    body.open.append(lambda: body.emit("copy-done", far, [start]))


def gather_start(body):
    """A gather of one operand or of several, which is under way for some time."""
    count = body.writer.number(1, 3)
    operands = [body.want(PART) for _ in range(count)]
    given, made = (PART,) * count, (VECTOR,) * count
    shape = (PART, VECTOR) if count == 1 else (given, made)
    attributes = (
        ", channel_id=1, replica_groups={{0,1}}, dimensions={0}, use_global_device_ids=true"
    )
    start = body.emit("all-gather-start", shape, operands, attributes, seen=False)
    result = VECTOR if count == 1 else made
    body.open.append(lambda: body.emit("all-gather-done", result, [start]))


def permute_start(body):
    shape = (VECTOR, VECTOR, "u32[]", "u32[]")
    attributes = ", channel_id=1, source_target_pairs={{0,1},{1,0}}"
    operand = [body.want(VECTOR)]
    start = body.emit("collective-permute-start", shape, operand, attributes, seen=False)
    body.open.append(lambda: body.emit("collective-permute-done", VECTOR, [start]))


# Steps with computations of their own.


def region(body):
    """The sum that a reduction calls; no schedule enters it."""
    inner = Body(body.writer, DEPTH, [NUMBER, NUMBER])
    for number in list(inner.waiting):
        inner.parameter(number)
    arguments = [inner.arguments[0], inner.arguments[1]]
    inner.emit("add", NUMBER, arguments)
    inner.open, inner.seen = [], inner.seen[-1:]
    return inner.close("region", NUMBER)


def reduce_start(body):
    """An all-reduce that is under way for some time and writes in place."""
    attributes = (
        f", channel_id=1, replica_groups={{}}, to_apply={body.writer.percent}{region(body)}"
    )
    count = body.writer.number(1, 2)
    operands = [body.own(VECTOR) for _ in range(count)]
    shape = VECTOR if count == 1 else (VECTOR,) * count
    start = body.emit("all-reduce-start", shape, operands, attributes, seen=False)
    body.open.append(lambda: body.emit("all-reduce-done", shape, [start]))


def scatter(body):
    attributes = (
        ", update_window_dims={0}, inserted_window_dims={}, scatter_dims_to_operand_dims={0},"
        f" index_vector_dim=0, to_apply={body.writer.percent}{region(body)}"
    )
    operands = [body.own(VECTOR), body.want(COUNT), body.want(PART)]
    body.emit("scatter", VECTOR, operands, attributes)


def fusion(body):
    """A fusion that may write in place, through bitcasts, tuples and a nested fusion."""
    shapes = [VECTOR, PART, COUNT, *(VECTOR for _ in range(body.writer.number(0, 2)))]
    name, shape = fused(body.writer, shapes, body.writer.number(0, 1))
    kind = body.writer.choose(["kLoop", "kInput", "kOutput", "kCustom"])
    operands = [body.own(part) if part == VECTOR else body.want(part) for part in shapes]
    attributes = f", kind={kind}, calls={body.writer.percent}{name}"
    body.emit("fusion", shape, operands, attributes)


def fused(writer, shapes, depth):
    """A fused computation of these parameters: its name and the shape of its result."""
    inner = Body(writer, DEPTH, shapes, exact=True)
    for number in list(inner.waiting):
        inner.parameter(number)
    vectors = [inner.arguments[i] for i, shape in enumerate(shapes) if shape == VECTOR]
    made = []
    for _ in range(writer.number(1, 3)):
        source = writer.choose(vectors)
        how = writer.choose(["plain", "bitcasts", "nested"] if depth else ["plain", "bitcasts"])
        if how == "bitcasts":
            flat = inner.emit("bitcast", MATRIX, [source])
            source = inner.emit("bitcast", VECTOR, [flat])
        elif how == "nested":
            name, shape = fused(writer, [VECTOR, PART, COUNT], 0)
            operands = [source, inner.arguments[1], inner.arguments[2]]
            attributes = f", kind=kLoop, calls={writer.percent}{name}"
            source = inner.emit("fusion", shape, operands, attributes)
            if isinstance(shape, tuple):
                source = element(inner, source, 0)
            if inner.shapes[source] == MATRIX:
                source = inner.emit("bitcast", VECTOR, [source])
        if writer.number(0, 3):
            operands = [source, inner.arguments[1], inner.arguments[2]]
            updated = inner.emit("dynamic-update-slice", VECTOR, operands)
            if writer.number(0, 3) == 0:
                updated = inner.emit("bitcast", MATRIX, [updated])
            made.append(updated)
        elif writer.named and writer.chance():
            how = writer.choose(["convert", "copy", "cut", "repeat", "scan", "constant"])
            made.append(moved_inside(inner, how, source))
        else:
            made.append(inner.emit("negate", VECTOR, [source]))
    # XLA wants everything in a fusion to be used.
    for name in [name for name, _ in inner.lines if name not in inner.read | set(made)]:
        made.append(inner.emit("negate", inner.shapes[name], [name]))
    if len(made) == 1:
        root, shape = made[0], inner.shapes[made[0]]
    else:
        shape = tuple(inner.shapes[name] for name in made)
        root = inner.emit("tuple", shape, made)
    inner.root = lambda _: root
    return inner.close("fused_computation", shape), shape


def moved_inside(inner, how, source):
    """What a fusion may move, cut or fill."""
    if how in ("convert", "copy"):
        return inner.emit(how, VECTOR, [source])
    if how == "cut":
        return inner.emit("slice", PART, [source], ", slice={[0:4]}")
    if how == "repeat":
        return inner.emit("broadcast", MATRIX, [inner.arguments[1]], ", dimensions={0}")
    if how == "scan":
        operands = [source, inner.arguments[2]]
        cut = inner.emit("dynamic-slice", PART, operands, ", dynamic_slice_sizes={4}")
        return inner.emit("bitcast", PART, [cut])
    number = inner.emit("constant", NUMBER, inside="0")
    return inner.emit("broadcast", VECTOR, [number], ", dimensions={}")


def inner_body(body, parameters, result, base):
    """A computation that is flattened into the schedule."""
    inner = Body(body.writer, body.depth + 1, parameters)
    if not inner.seen:
        inner.parameter(inner.waiting[0])
    for _ in range(body.writer.number(0, STEPS)):
        inner.step()
    return inner.close(base, result)


def carried(body):
    """The shape of a carry: most often a tuple."""
    if body.writer.number(0, 5) == 0:
        return body.writer.choose(LEAVES)
    shapes = [body.writer.choose(LEAVES) for _ in range(body.writer.number(1, 6))]
    if body.writer.number(0, 3) == 0:
        shapes.append((body.writer.choose(LEAVES), VECTOR))
    return tuple(shapes)


def loop(body):
    shape, percent = carried(body), body.writer.percent
    condition = inner_body(body, [shape], FLAG, "condition")
    inside = inner_body(body, [shape], shape, "body")
    attributes = f", condition={percent}{condition}, body={percent}{inside}"
    if body.writer.chance():
        attributes += ', backend_config={"known_trip_count":{"n":"4"}}'
    body.emit("while", shape, [body.own(shape)], attributes)


def conditional(body):
    """Two branches on a predicate, or two or three on a number."""
    percent, result = body.writer.percent, carried(body)
    count = body.writer.number(2, 3)
    given = [carried(body) for _ in range(count)]
    if body.writer.chance():
        # Branches that may give their argument back as it is.
        given = [result] * count
    names = [percent + inner_body(body, [shape], result, "branch") for shape in given]
    if count == 2 and body.writer.chance():
        attributes = f", true_computation={names[0]}, false_computation={names[1]}"
        chooser = FLAG
    else:
        attributes = f", branch_computations={{{', '.join(names)}}}"
        chooser = COUNT
    operands = [body.want(chooser), *(body.want(shape) for shape in given)]
    body.emit("conditional", result, operands, attributes)


def call(body):
    shapes, result = [carried(body) for _ in range(body.writer.number(1, 3))], carried(body)
    name = inner_body(body, shapes, result, "called")
    operands = [body.want(shape) for shape in shapes]
    body.emit("call", result, operands, f", to_apply={body.writer.percent}{name}")


def async_start(body):
    """A computation of one instruction that runs beside what comes after it."""
    writer = body.writer
    shapes = [writer.choose(ARRAYS) for _ in range(writer.number(1, 3))]
    inner = Body(writer, body.depth + 1, shapes, exact=True)
    for number in list(inner.waiting):
        inner.parameter(number)
    arguments = [inner.arguments[number] for number in range(len(shapes))]
    result = writer.choose([shapes[0], (VECTOR, PART)])
    how = writer.choose(["call", "custom-call", "negate"])
    if how == "call":
        name = inner_body(inner, shapes, result, "called")
        root = inner.emit("call", result, arguments, f", to_apply={writer.percent}{name}")
    elif how == "custom-call":
        root = inner.emit("custom-call", result, arguments, ', custom_call_target="f"')
    else:
        result = shapes[0]
        root = inner.emit("negate", result, arguments[:1])
    inner.root = lambda _: root
    name = inner.close("async_computation", result)
    operands = [body.want(shape) for shape in shapes]
    shape = (tuple(shapes), result, COUNT)
    attributes = f", calls={writer.percent}{name}"
    chain = [body.emit("async-start", shape, operands, attributes, seen=False)]

    def go_on():
        """Write the async-done, or an async-update first."""
        if writer.number(0, 2) == 0:
            chain.append(body.emit("async-update", shape, chain[-1:], seen=False))
            body.open.append(go_on)
        else:
            body.emit("async-done", result, chain[-1:])

    body.open.append(go_on)


FLAT_STEPS = (
    *(elementwise, elementwise_to_fast, make_tuple, nested_tuple, take_element, take_element),
    *(copy, bitcast, barrier, update, set_size, custom_call, copy_start, gather_start),
    *(permute_start, reduce_start, scatter, fusion, fusion),
)
MOVING_STEPS = (*(rearrange for _ in range(6)), dynamic_slice, dynamic_slice, collective, update)
STEPS_OF_BODIES = (*FLAT_STEPS, loop, loop, loop, conditional, conditional, call, async_start)


@st.composite
def scheduled_hlo(draw, nested=True, named=False):
    """The text of one module; JAX's CPU client takes no tuples in tuples, nor as arguments."""
    flags = [draw(st.booleans()) for _ in range(3)]
    percent = draw(st.sampled_from(["%", "%", "%", ""]))
    writer = Writer(draw, *flags, percent=percent, named=named)
    kinds = [*LEAVES]
    if nested:
        kinds += [(VECTOR, COUNT), (VECTOR, (PART, VECTOR))]
    parameters = draw(st.lists(st.sampled_from(kinds), min_size=1, max_size=7))
    entry = Body(writer, 0, parameters, nested=nested)
    if not entry.seen:
        entry.parameter(0)
    for _ in range(writer.number(1, 2 * STEPS)):
        entry.step()
    entry.close("main", entry=True)
    root = entry.shapes[entry.result]
    header = "HloModule jit_f, is_scheduled=true"
    if pairs := donated(writer, parameters, root):
        header += f", input_output_alias={{ {', '.join(pairs)} }}"
    layouts = listed(writer.show(shape) for shape in parameters)
    header += f", entry_computation_layout={{({layouts})->{writer.show(root)}}}"
    return "\n\n".join([header, *writer.done]) + "\n"


def leaves(shape, index=()):
    """Every array in a shape, with its index."""
    if not isinstance(shape, tuple):
        return [(index, shape)]
    return [leaf for i, part in enumerate(shape) for leaf in leaves(part, (*index, i))]


def donated(writer, parameters, root):
    """Arguments whose room a result takes, each once."""
    free = [(n, i, s) for n, p in enumerate(parameters) for i, s in leaves(p)]
    pairs = []
    for out, shape in leaves(root):
        fitting = [option for option in free if option[2] == shape]
        if fitting and writer.number(0, 2) == 0:
            option = writer.choose(fitting)
            free.remove(option)
            into = ",".join(str(i) for i in option[1])
            place = ",".join(str(i) for i in out)
            pairs.append(f"{{{place}}}: ({option[0]}, {{{into}}}, may-alias)")
    return pairs
