"""Log lines that are JSON objects, as container runtimes and log collectors write them.

They wrap each line that a program prints in an object of its own, so the lines of one message are
spread over as many objects.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

# No `{` or `=` precedes the object: the attributes of an HLO instruction may contain objects.
_OBJECT = re.compile(r"(?P<before>[^{=]{0,500})(?P<object>\{\s*\".*\})\s*", re.DOTALL)
# The fields that identify the writer of a line.
_WRITER = re.compile(r"pod|container|host|node|worker|rank|process|instance|stream", re.IGNORECASE)
_MAX_DEPTH = 8


def record_texts(line: str) -> list[tuple[str, str]] | None:
    r"""Pairs of stream and string for the strings of a JSON object.

    All lines of one message have the same stream: the text before the object, the path of the
    field, and the fields that identify the writer, separated by NUL. None if the line is not an
    object, or has no strings.

    >>> record_texts('{"log": "Out of memory", "pod": "a"}')
    [('\x00/log\x00/pod=a', 'Out of memory'), ('\x00/pod', 'a')]
    """
    match = _OBJECT.fullmatch(line)
    if match is None:
        return None
    try:
        # Numbers are not used, and a conversion of thousands of digits is slow.
        record = json.loads(match["object"], parse_int=str, parse_float=str)
    except (ValueError, RecursionError):
        return None
    fields = list(_string_fields(record, "", _MAX_DEPTH))
    writer = [(path, text) for path, text in fields if _WRITER.search(path.rpartition("/")[2])]
    texts = []
    for path, text in fields:
        identity = [f"{name}={value}" for name, value in writer if name != path]
        texts.append(("\0".join([match["before"], path, *identity]), text))
    return texts or None


def _string_fields(value: Any, path: str, max_depth: int) -> Iterator[tuple[str, str]]:
    """Path and text of the strings in a JSON value, down to a depth; lists are skipped."""
    if isinstance(value, str):
        # Half of a surrogate pair cannot be stored.
        yield path, value.encode(errors="replace").decode()
    elif isinstance(value, dict) and max_depth:
        for key, inner in value.items():
            yield from _string_fields(inner, f"{path}/{key}", max_depth - 1)
