"""Reader of MLIR's bytecode, which the body of a Pallas kernel is stored in.

The format is stable and states the size of each part, so parts that are not needed are skipped:
https://mlir.llvm.org/docs/BytecodeFormat/. A kernel has some KiB, which are read byte by byte.
jaxlib's own reader does not return for some damaged bytecode, so it is not used.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain, count
from typing import Final, NamedTuple, TypeAlias

_MAGIC: Final = b"ML\xefR"
# JAX asks MLIR for this version, which every later one can read.
_VERSION: Final = 0
_STRINGS, _DIALECTS, _VALUES, _OFFSETS, _IR = range(5)

# The kinds of attributes and types of the dialect `builtin`.
_ARRAY, _DICTIONARY, _STRING, _, _SYMBOL, _, _TYPE, _, _INTEGER = range(9)
_DENSE_ARRAY: Final = 17
_INTEGER_TYPE, _INDEX_TYPE, _FUNCTION_TYPE = range(3)
_FLOATS: Final = {3: "bf16", 4: "f16", 5: "f32", 6: "f64"}
_MEMREF: Final = 10
_MEMREF_IN_SPACE: Final = 11
_DYNAMIC: Final = -(2**63)

# The bits of an operation's mask: the parts that follow.
_HAS_ATTRIBUTES, _HAS_RESULTS, _HAS_OPERANDS, _HAS_SUCCESSORS, _HAS_REGIONS = (
    1 << bit for bit in range(5)
)

Value: TypeAlias = "int | str | tuple[Value, ...] | dict[str, Value] | Memref | None"


class Memref(NamedTuple):
    """An array in memory; a dynamic dimension's size is None."""

    shape: tuple[int | None, ...]
    element: str
    space: str


@dataclass(frozen=True)
class Operation:
    """An operation, with those in its regions.

    Attributes:
        operands, results: numbers of values.
        types: of the results.
        arguments: the values that its first region takes.
    """

    name: str
    attributes: dict[str, Value]
    operands: tuple[int, ...]
    results: tuple[int, ...]
    types: tuple[Value, ...]
    arguments: range
    regions: tuple[tuple["Operation", ...], ...]

    @property
    def body(self) -> tuple["Operation", ...]:
        """The operations of all regions."""
        return tuple(chain.from_iterable(self.regions))

    def walk(self) -> Iterator["Operation"]:
        """This operation and all within."""
        yield self
        for inner in self.body:
            yield from inner.walk()


def read_bytecode(content: bytes) -> tuple[Operation, ...]:
    """The operations of a module in bytecode, in order. Raises ValueError."""
    try:
        data = _Bytes(content)
        if data.take(len(_MAGIC)) != _MAGIC:
            raise ValueError("this is no MLIR bytecode")
        if data.number() != _VERSION:
            raise ValueError("a newer version of bytecode")
        data.text()
        sections: dict[int, _Bytes] = {}
        while data:
            kind, section = data.section()
            sections[kind] = section
        return _ModuleReader(sections).read_block(sections[_IR], [], count())[1]
    except (LookupError, TypeError, ArithmeticError, RecursionError) as error:
        raise ValueError(f"the bytecode is damaged: {error!r}") from None


class _Bytes:
    """Bytes that are read from front to back. Raises IndexError and ValueError for damage."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.at = 0

    def __bool__(self) -> bool:
        return self.at < len(self.content)

    def byte(self) -> int:
        value = self.content[self.at]
        self.at += 1
        return value

    def take(self, size: int) -> bytes:
        if size > len(self.content) - self.at:
            raise ValueError("the bytecode ends too early")
        self.at += size
        return self.content[self.at - size : self.at]

    def number(self) -> int:
        """A number; the low zero bits of its first byte are the number of bytes that follow."""
        first = self.byte()
        if first & 1:
            return first >> 1
        if first == 0:
            return int.from_bytes(self.take(8), "little")
        following = (first & -first).bit_length() - 1
        return (first | int.from_bytes(self.take(following), "little") << 8) >> (following + 1)

    def signed(self) -> int:
        value = self.number()
        return (value >> 1) ^ -(value & 1)

    def numbers(self) -> tuple[int, ...]:
        """A list of numbers after its length."""
        return tuple([self.number() for _ in range(self.number())])

    def text(self) -> str:
        """A text that ends with a byte 0."""
        end = self.content.index(0, self.at)
        content = self.take(end - self.at)
        self.at += 1
        return content.decode()

    def section(self) -> tuple[int, "_Bytes"]:
        """The kind and the content of a section."""
        kind, size = self.byte(), self.number()
        if kind & 0x80:
            alignment = self.number()
            self.at += -self.at % alignment
        return kind & 0x7F, _Bytes(self.take(size))


class _Entry(NamedTuple):
    """An attribute or a type; one that is not encoded is a text."""

    dialect: str
    is_encoded: bool
    content: bytes


class _ModuleReader:
    """Reads a module's operations.

    Attributes:
        operation_names: by number, with the dialect: `arith.addi`.
        attributes, types: by number, decoded when an operation first names them.
    """

    def __init__(self, sections: dict[int, _Bytes]) -> None:
        sizes = sections[_STRINGS].numbers()
        # The last string's size comes first.
        self.strings = [sections[_STRINGS].take(size)[:-1].decode() for size in reversed(sizes)]
        data = sections[_DIALECTS]
        dialects = [self.strings[number] for number in data.numbers()]
        self.operation_names: list[str] = []
        while data:
            dialect = dialects[data.number()]
            self.operation_names += [f"{dialect}.{self.strings[name]}" for name in data.numbers()]
        offsets, contents = sections[_OFFSETS], sections[_VALUES]
        attribute_count, type_count = offsets.number(), offsets.number()
        entries: list[_Entry] = []
        while len(entries) < attribute_count + type_count:
            dialect = dialects[offsets.number()]
            for number in offsets.numbers():
                entries.append(_Entry(dialect, bool(number & 1), contents.take(number >> 1)))
        self.attribute_entries = entries[:attribute_count]
        self.type_entries = entries[attribute_count:]
        self.attributes: dict[int, Value] = {}
        self.types: dict[int, Value] = {}
        self.value_count = 0

    def attribute(self, number: int) -> Value:
        """An attribute; None for one that is not understood."""
        if number not in self.attributes:
            entry = self.attribute_entries[number]
            self.attributes[number] = self._decode(entry, self._builtin_attribute)
        return self.attributes[number]

    def type(self, number: int) -> Value:
        """A type; None for one that is not understood."""
        if number not in self.types:
            self.types[number] = self._decode(self.type_entries[number], self._builtin_type)
        return self.types[number]

    def _decode(self, entry: _Entry, decode_builtin: Callable[[_Bytes], Value]) -> Value:
        data = _Bytes(entry.content)
        if not entry.is_encoded:
            return data.text()
        return decode_builtin(data) if entry.dialect == "builtin" else None

    def _builtin_attribute(self, data: _Bytes) -> Value:
        code = data.number()
        if code == _ARRAY:
            return tuple(map(self.attribute, data.numbers()))
        if code == _DICTIONARY:
            pairs = [(data.number(), data.number()) for _ in range(data.number())]
            return {str(self.attribute(name)): self.attribute(value) for name, value in pairs}
        if code == _STRING:
            return self.strings[data.number()]
        if code == _SYMBOL:
            return self.attribute(data.number())
        if code == _TYPE:
            return self.type(data.number())
        if code == _INTEGER:
            type_ = self.type(data.number())
            is_short = isinstance(type_, str) and type_[1:].isdigit() and int(type_[1:]) <= 8
            return data.byte() if is_short else data.signed()
        if code == _DENSE_ARRAY:
            data.number()
            length = data.number()
            content = data.take(data.number())
            width = len(content) // length if length else 1
            starts = range(0, len(content), width)
            return tuple(
                [int.from_bytes(content[at : at + width], "little", signed=True) for at in starts]
            )
        return None

    def _builtin_type(self, data: _Bytes) -> Value:
        code = data.number()
        if code == _INTEGER_TYPE:
            return f"i{data.number() >> 2}"
        if code == _INDEX_TYPE:
            return "index"
        if code == _FUNCTION_TYPE:
            return tuple(map(self.type, data.numbers()))  # the arguments' types
        if code in (_MEMREF, _MEMREF_IN_SPACE):
            space = self.attribute(data.number()) if code == _MEMREF_IN_SPACE else ""
            sizes = [data.signed() for _ in range(data.number())]
            shape = tuple([None if size == _DYNAMIC else size for size in sizes])
            return Memref(shape, str(self.type(data.number())), str(space))
        return _FLOATS.get(code)

    def read_block(
        self, data: _Bytes, scope: list[int], values: Iterator[int]
    ) -> tuple[int, tuple[Operation, ...]]:
        """A block: the number of its arguments, and its operations.

        Args:
            scope: the visible values, at the indices that operands state.
            values: the numbers of the region's values, which its blocks define in order.
        """
        head = data.number()
        arguments = data.number() if head & 1 else 0
        for _ in range(arguments):
            data.number()  # type
            data.number()  # location
            next(values)
        operations = [self._read_operation(data, scope, values) for _ in range(head >> 1)]
        return arguments, tuple(operations)

    def _read_region(self, data: _Bytes, scope: list[int]) -> tuple[range, tuple[Operation, ...]]:
        """A region: the first block's arguments, and its operations.

        All values of a region precede those of regions within in the scope.
        """
        blocks = data.number()
        if not blocks:
            return range(0), ()
        outer_size, new_values = len(scope), data.number()
        if new_values > len(data.content):
            raise ValueError("a region has more values than bytes")
        first = self.value_count
        self.value_count += new_values
        scope += range(first, self.value_count)
        values = count(first)
        parts = [self.read_block(data, scope, values) for _ in range(blocks)]
        del scope[outer_size:]
        arguments = range(first, first + parts[0][0])
        return arguments, tuple(chain.from_iterable([operations for _, operations in parts]))

    def _read_operation(self, data: _Bytes, scope: list[int], values: Iterator[int]) -> Operation:
        name = self.operation_names[data.number()]
        mask = data.byte()
        data.number()  # location
        attributes = self.attribute(data.number()) if mask & _HAS_ATTRIBUTES else {}
        types = tuple(map(self.type, data.numbers())) if mask & _HAS_RESULTS else ()
        results = tuple([next(values) for _ in types])
        indices = data.numbers() if mask & _HAS_OPERANDS else ()
        operands = tuple([scope[index] for index in indices])
        if mask & _HAS_SUCCESSORS:
            data.numbers()
        arguments = range(0)
        regions: list[tuple[Operation, ...]] = []
        if mask & _HAS_REGIONS:
            head = data.number()
            for number in range(head >> 1):
                # The operations of an isolated region name none of the outer values.
                region_scope = [] if head & 1 else scope
                region_arguments, operations = self._read_region(data, region_scope)
                arguments = arguments if number else region_arguments
                regions.append(operations)
        return Operation(
            name,
            attributes if isinstance(attributes, dict) else {},
            operands,
            results,
            types,
            arguments,
            tuple(regions),
        )
