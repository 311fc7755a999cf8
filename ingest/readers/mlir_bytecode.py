"""Reader of MLIR's bytecode, of which the body of a Pallas kernel is made.

The format is stable and says where each part ends, so what is not needed is passed over:
https://mlir.llvm.org/docs/BytecodeFormat/. A kernel is some KiB, and its bytes are read one by one.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from itertools import count as count_from
from typing import NamedTuple, TypeAlias

MAGIC = b"ML\xefR"
_STRINGS, _DIALECTS, _VALUES, _OFFSETS, _IR = range(5)
# The versions that brought versions of dialects, sections of their own for regions, orders of uses,
# arguments without locations, and properties beside attributes. JAX writes version 0.
_VERSIONED_DIALECTS, _LAZY, _USE_LISTS, _ELIDED_LOCATIONS, _PROPERTIES = 1, 2, 3, 4, 5

# The kinds of attributes and types of the dialect `builtin`.
_ARRAY, _DICTIONARY, _STRING, _, _SYMBOL, _, _TYPE, _, _INTEGER = range(9)
_DENSE_ARRAY = 17
_INTEGER_TYPE, _INDEX_TYPE, _FUNCTION_TYPE = range(3)
_FLOATS = {3: "bf16", 4: "f16", 5: "f32", 6: "f64"}
_MEMREF, _MEMREF_IN_SPACE = 10, 11
_DYNAMIC = -(2**63)

Value: TypeAlias = "int | str | tuple[Value, ...] | dict[str, Value] | Memref | Signature | None"


class Memref(NamedTuple):
    """An array in memory; of a dynamic dimension the size is None."""

    shape: tuple[int | None, ...]
    element: str
    space: str


class Signature(NamedTuple):
    """The types of a function's arguments."""

    arguments: tuple[Value, ...]


@dataclass(frozen=True)
class Operation:
    """An operation, with those in its regions.

    operands and results are numbers of values. arguments: those that its first region takes.
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


class _Bytes:
    """Bytes that are read from front to back. Raises IndexError and ValueError at nonsense."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.at = 0

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
        """A number, whose first byte says by its low zero bits how many bytes follow."""
        first = self.byte()
        if first & 1:
            return first >> 1
        if first == 0:
            return int.from_bytes(self.take(8), "little")
        more = (first & -first).bit_length() - 1
        return (first | int.from_bytes(self.take(more), "little") << 8) >> (more + 1)

    def signed(self) -> int:
        value = self.number()
        return (value >> 1) ^ -(value & 1)

    def numbers(self) -> tuple[int, ...]:
        return tuple(self.number() for _ in range(self.number()))

    def text(self) -> str:
        end = self.content.index(0, self.at)
        content = self.take(end - self.at)
        self.at += 1
        return content.decode()

    def section(self) -> tuple[int, "_Bytes"]:
        kind, size = self.byte(), self.number()
        if kind & 0x80:
            alignment = self.number()
            self.at += -self.at % alignment
        return kind & 0x7F, _Bytes(self.take(size))

    def __bool__(self) -> bool:
        return self.at < len(self.content)


class Bytecode:
    """A module in MLIR's bytecode."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._version = 0
        self._sections: dict[int, _Bytes] = {}
        self._known: dict[tuple[bool, int], Value] = {}
        self._values = 0

    def operations(self) -> tuple[Operation, ...]:
        """The operations of the module, in order. Raises ValueError."""
        try:
            data = _Bytes(self._content)
            if data.take(len(MAGIC)) != MAGIC:
                raise ValueError("this is no MLIR bytecode")
            self._version = data.number()
            data.text()
            while data:
                kind, section = data.section()
                self._sections[kind] = section
            return self._block(_Bytes(self._sections[_IR].content), [], iter(()))[1]
        except (LookupError, TypeError, StopIteration, RecursionError) as error:
            raise ValueError(f"the bytecode is damaged: {error!r}") from None

    @cached_property
    def _strings(self) -> list[str]:
        data = self._sections[_STRINGS]
        sizes = data.numbers()
        # The sizes are of the last string first.
        return [data.take(size)[:-1].decode() for size in reversed(sizes)]

    @cached_property
    def _names(self) -> tuple[list[str], list[str]]:
        """The dialects, and the operations' names."""
        data = self._sections[_DIALECTS]
        dialects = []
        for _ in range(data.number()):
            number = data.number()
            if self._version >= _VERSIONED_DIALECTS:
                if number & 1:
                    data.section()
                number >>= 1
            dialects.append(self._strings[number])
        if self._version >= _ELIDED_LOCATIONS:
            data.number()
        names = []
        while data:
            dialect = dialects[data.number()]
            for number in data.numbers():
                name = self._strings[number >> (self._version >= _PROPERTIES)]
                names.append(f"{dialect}.{name}")
        return dialects, names

    @cached_property
    def _entries(self) -> tuple[list[tuple[str, bool, bytes]], int]:
        """The attributes and after them the types: dialect, whether encoded, bytes; how many are
        attributes.
        """
        data, content = self._sections[_OFFSETS], self._sections[_VALUES]
        attributes, types = data.number(), data.number()
        entries: list[tuple[str, bool, bytes]] = []
        while len(entries) < attributes + types:
            dialect = self._names[0][data.number()]
            for number in data.numbers():
                entries.append((dialect, bool(number & 1), content.take(number >> 1)))
        return entries, attributes

    def _attribute(self, index: int) -> Value:
        return self._value(index, is_type=False)

    def _type(self, index: int) -> Value:
        return self._value(index, is_type=True)

    def _value(self, index: int, *, is_type: bool) -> Value:
        key = is_type, index
        if key not in self._known:
            entries, attributes = self._entries
            dialect, is_encoded, content = entries[index + attributes * is_type]
            data = _Bytes(content)
            if not is_encoded:
                self._known[key] = data.text()
            elif dialect == "builtin":
                read = self._builtin_type if is_type else self._builtin_attribute
                self._known[key] = read(data)
            else:
                self._known[key] = None
        return self._known[key]

    def _builtin_attribute(self, data: _Bytes) -> Value:
        code = data.number()
        if code == _ARRAY:
            return tuple(map(self._attribute, data.numbers()))
        if code == _DICTIONARY:
            pairs = [(data.number(), data.number()) for _ in range(data.number())]
            return {str(self._attribute(name)): self._attribute(of) for name, of in pairs}
        if code == _STRING:
            return self._strings[data.number()]
        if code == _SYMBOL:
            return self._attribute(data.number())
        if code == _TYPE:
            return self._type(data.number())
        if code == _INTEGER:
            kind = self._type(data.number())
            is_short = isinstance(kind, str) and kind[1:].isdigit() and int(kind[1:]) <= 8
            return data.byte() if is_short else data.signed()
        if code == _DENSE_ARRAY:
            data.number()
            count = data.number()
            content = data.take(data.number())
            width = len(content) // count if count else 1
            starts = range(0, len(content), width)
            return tuple(
                int.from_bytes(content[at : at + width], "little", signed=True) for at in starts
            )
        return None

    def _builtin_type(self, data: _Bytes) -> Value:
        code = data.number()
        if code == _INTEGER_TYPE:
            return f"i{data.number() >> 2}"
        if code == _INDEX_TYPE:
            return "index"
        if code == _FUNCTION_TYPE:
            return Signature(tuple(map(self._type, data.numbers())))
        if code in (_MEMREF, _MEMREF_IN_SPACE):
            space = self._attribute(data.number()) if code == _MEMREF_IN_SPACE else ""
            sizes = [data.signed() for _ in range(data.number())]
            shape = tuple(None if size == _DYNAMIC else size for size in sizes)
            return Memref(shape, str(self._type(data.number())), str(space))
        return _FLOATS.get(code)

    def _region(self, data: _Bytes, scope: list[int]) -> tuple[range, tuple[Operation, ...]]:
        """A region: the numbers of the first block's arguments, and its operations.

        scope: the numbers of the values that are seen here, in the places that operands name. All
        values of a region have places before those of regions within.
        """
        blocks = data.number()
        if not blocks:
            return range(0), ()
        outer, count = len(scope), data.number()
        if count > len(data.content):
            raise ValueError("a region has more values than bytes")
        first = self._values
        self._values += count
        scope += range(first, self._values)
        following = count_from(first)
        parts = [self._block(data, scope, following) for _ in range(blocks)]
        del scope[outer:]
        arguments = range(first, first + parts[0][0])
        return arguments, tuple(operation for _, inner in parts for operation in inner)

    def _block(
        self, data: _Bytes, scope: list[int], following: Iterator[int]
    ) -> tuple[int, tuple[Operation, ...]]:
        head = data.number()
        arguments = 0
        if head & 1:
            arguments = data.number()
            for _ in range(arguments):
                kind = data.number()
                if self._version < _ELIDED_LOCATIONS or kind & 1:
                    data.number()
                next(following)
            if self._version >= _USE_LISTS and data.byte():
                self._pass_use_lists(data, arguments)
        operations = [self._operation(data, scope, following) for _ in range(head >> 1)]
        return arguments, tuple(operations)

    def _pass_use_lists(self, data: _Bytes, values: int) -> None:
        """Pass over the orders of uses, which nobody needs here."""
        for _ in range(data.number() if values > 1 else bool(values)):
            if values > 1:
                data.number()
            for _ in range(data.number() >> 1):
                data.number()

    def _operation(self, data: _Bytes, scope: list[int], following: Iterator[int]) -> Operation:
        name = self._names[1][data.number()]
        mask = data.byte()
        data.number()
        attributes = self._attribute(data.number()) if mask & 1 else {}
        if mask & 0x40:
            data.number()
        types = tuple(map(self._type, data.numbers())) if mask & 2 else ()
        results = tuple(next(following) for _ in types)
        operands = tuple(scope[place] for place in data.numbers()) if mask & 4 else ()
        if mask & 8:
            data.numbers()
        if mask & 0x20:
            self._pass_use_lists(data, len(types))
        arguments = range(0)
        regions: list[tuple[Operation, ...]] = []
        if mask & 0x10:
            head = data.number()
            for _ in range(head >> 1):
                is_isolated = head & 1
                inner = data.section()[1] if is_isolated and self._version >= _LAZY else data
                taken, operations = self._region(inner, [] if is_isolated else scope)
                arguments = arguments if regions else taken
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
