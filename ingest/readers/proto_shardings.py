"""Shardings as protocol buffers, printed as HLO text prints them."""

from ...xla.errors import DumpError
from .proto_shapes import numbered_list
from .wire_scalar import content, fields, number_of, numbers

_REPLICATED, _MAXIMAL, _TUPLE, _OTHER, _MANUAL, _UNKNOWN, _UNREDUCED = range(7)
_WHOLE = {
    _REPLICATED: "replicated",
    _MANUAL: "manual",
    _UNKNOWN: "unknown",
    _UNREDUCED: "unreduced",
}
_SUBGROUPS = {_REPLICATED: "replicated", _MAXIMAL: "maximal", _MANUAL: "manual"}
_SUBGROUPS[_UNREDUCED] = "unreduced"

# Fields of OpSharding.
_TYPE, _DIMENSIONS, _DEVICES, _ELEMENTS, _LAST_REPLICATED, _SUBGROUP_TYPES = 1, 3, 4, 5, 6, 8
_RESHAPE, _TRANSPOSE, _IS_GROUP, _GROUP, _GROUP_TYPE, _NAMED = 9, 10, 11, 12, 13, 14


def sharding_text(data: bytes | memoryview, start: int, end: int, *, depth: int = 0) -> str | None:
    """A sharding such as `{devices=[4,1]<=[4]}`; None for one by the names of mesh axes.

    Raises DumpError.
    """
    if depth > 1:
        raise DumpError(f"a sharding's tuples are nested at byte {start}")
    single = dict.fromkeys((_TYPE, _LAST_REPLICATED, _IS_GROUP, _GROUP, _GROUP_TYPE), 0)
    lists: dict[int, list[int]] = {
        number: [] for number in (_DIMENSIONS, _DEVICES, _SUBGROUP_TYPES, _RESHAPE, _TRANSPOSE)
    }
    elements: list[str | None] = []
    for field in fields(data, start, end):
        number = field[0]
        if number in single:
            single[number] = number_of(field)
        elif number in lists:
            lists[number] += numbers(data, field)
        elif number == _ELEMENTS:
            elements.append(sharding_text(data, *content(field), depth=depth + 1))
        elif number == _NAMED:
            return None
    if single[_TYPE] == _TUPLE:
        texts = [text for text in elements if text is not None]
        return f"{{{numbered_list(texts)}}}" if len(texts) == len(elements) else None
    group = f" shard_{'like' if single[_GROUP_TYPE] else 'as'} {single[_GROUP]}"
    return f"{{{_leaf(single, lists)}{group if single[_IS_GROUP] else ''}}}"


def _leaf(single: dict[int, int], lists: dict[int, list[int]]) -> str:
    type_ = single[_TYPE]
    if type_ in _WHOLE:
        return _WHOLE[type_]
    devices = _joined(lists[_DEVICES])
    if type_ == _MAXIMAL:
        return f"maximal device={devices}"
    reshape, transpose = lists[_RESHAPE], lists[_TRANSPOSE]
    if reshape:
        devices = f"<=[{_joined(reshape)}]"
        # XLA does not print a transposition of one dimension, which changes nothing.
        if len(transpose) > 1:
            devices += f"T({_joined(transpose)})"
    text = f"devices=[{_joined(lists[_DIMENSIONS])}]{devices}"
    if single[_LAST_REPLICATED]:
        text += " last_tile_dim_replicate"
    if lists[_SUBGROUP_TYPES]:
        types = [_SUBGROUPS.get(type_, "error_type.") for type_ in lists[_SUBGROUP_TYPES]]
        text += f" last_tile_dims={{{', '.join(types)}}}"
    return text


def _joined(values: list[int]) -> str:
    return ",".join(map(str, values))
