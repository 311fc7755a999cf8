"""The ways to colour the map of a module, and the colours of each."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...cells import one_line
from ..colours import CATEGORIES, PASSES, RANKED, REST

_NEARLY_ALL = 0.9
_TITLES = {
    "pass": "pass",
    "role": "role",
    "scope": "scope",
    "source": "source line",
    "category": "category",
    "element_type": "data type",
}
_NOT_KNOWN = {
    "pass": "no pass is known",
    "role": "no role is known",
    "scope": "no scope is known",
    "source": "no source line is known",
    "category": "no category is known",
    "element_type": "tuples and tables",
}


@dataclass(frozen=True)
class Colouring:
    """A way to colour a map.

    key: for scripts; title: what it says; names: what is told apart; colours: of each name;
    codes: the place in `names` of each row of the table of buffers; peak_bytes: what each name
    takes of the peak.
    """

    key: str
    title: str
    names: Sequence[str]
    colours: Sequence[str]
    codes: NDArray[np.int64]
    peak_bytes: Sequence[int]


def colourings(buffers: pa.Table) -> tuple[Colouring, ...]:
    """The colourings of `module_buffers`: by pass, role, scope, source, category and data type.

    The first is the first that tells something, by pass where none does.
    """
    ways = [colouring(buffers, column) for column in _TITLES]
    best = next(filter(_tells, ways), ways[0])
    return (best, *(way for way in ways if way is not best))


def _tells(way: Colouring) -> bool:
    """Whether no single name takes nearly all of the peak, as arguments do in a decoding step."""
    return max(way.peak_bytes, default=0) <= _NEARLY_ALL * sum(way.peak_bytes)


def colouring(buffers: pa.Table, column: str) -> Colouring:
    """One of these. The names are in order of what they take of the peak."""
    encoded = buffers[column].combine_chunks().dictionary_encode()
    names = [*encoded.dictionary.to_pylist(), None]
    codes = encoded.indices.cast(pa.int64()).fill_null(len(names) - 1)
    codes = codes.to_numpy(zero_copy_only=False)
    at_peak = _sums(codes, buffers["peak_counted_bytes"].to_numpy(), len(names))
    life = buffers["end_time"].to_numpy().astype(np.int64) + 1 - buffers["start_time"].to_numpy()
    areas = _sums(codes, buffers["size_bytes"].to_numpy() * life, len(names))
    known = np.array([name not in (None, "") for name in names])
    order = np.lexsort([-areas, -at_peak, ~known])
    order = order[np.bincount(codes, minlength=len(names))[order] > 0]
    place = np.zeros(len(names), np.int64)
    place[order] = np.arange(len(order))
    texts = [one_line(names[i] or _NOT_KNOWN[column]) for i in order]
    return Colouring(
        column,
        _TITLES[column],
        texts,
        _colours([names[i] for i in order], {"pass": PASSES, "category": CATEGORIES}.get(column)),
        place[codes],
        at_peak[order].tolist(),
    )


def _sums(codes: NDArray[np.int64], numbers: NDArray[np.int64], length: int) -> NDArray[np.int64]:
    sums = np.zeros(length, np.int64)
    np.add.at(sums, codes, numbers)
    return sums


def _colours(names: Sequence[str | None], fixed: Mapping[str, str] | None) -> list[str]:
    """The fixed colours, or else the ranked ones for the first; what has no name is grey."""
    if fixed is not None:
        return [fixed.get(name or "", REST) for name in names]
    ranked = [*RANKED, *[REST] * len(names)]
    return [ranked[i] if name else REST for i, name in enumerate(names)]
