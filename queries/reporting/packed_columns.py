"""Columns as a page's scripts read them: differences of numbers, and each text once.

`pages/columns.js` is the other side.
"""

from typing import Any

import numpy as np
import pyarrow as pa

from ..cells import one_line

# What null is among numbers: positions, sizes and ids are never negative.
MISSING = -1


def packed(rows: pa.Table) -> dict[str, Any]:
    """The columns of a table, all of whole numbers or texts, by name."""
    return {
        name: _texts(column) if _holds_texts(column.type) else differences(whole(column))
        for name, column in zip(rows.schema.names, rows.columns, strict=True)
    }


def whole(column: pa.ChunkedArray) -> np.ndarray:
    """A column of whole numbers or truths, MISSING where it is null."""
    numbers: np.ndarray = column.cast(pa.int64()).fill_null(MISSING).to_numpy()
    return numbers


def differences(numbers: np.ndarray) -> list[int]:
    """Each number less the one before it: neighbours differ little, so this compresses well."""
    listed: list[int] = np.diff(numbers, prepend=np.int64(0)).tolist()
    return listed


def _holds_texts(type_: pa.DataType) -> bool:
    return bool(pa.types.is_string(type_) or pa.types.is_large_string(type_))


def _texts(column: pa.ChunkedArray) -> dict[str, list[Any]]:
    """The distinct texts in order of appearance, and which of them each row has."""
    encoded = column.combine_chunks().dictionary_encode()
    numbers = encoded.indices.cast(pa.int64()).fill_null(MISSING).to_numpy(zero_copy_only=False)
    return {
        "texts": [one_line(text) for text in encoded.dictionary.to_pylist()],
        "rows": differences(numbers),
    }
