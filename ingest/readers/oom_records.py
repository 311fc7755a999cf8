"""Lines of a log that are JSON objects: the texts in them, each with the stream it is of.

Containers and collectors of logs wrap each line that a program writes in an object of its own,
so the lines of one message are spread over as many objects.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

# What may stand before the object: no HLO, whose attributes may hold objects too.
_OBJECT = re.compile(r"(?P<before>[^{=]{0,500})(?P<object>\{\s*\".*\})\s*", re.DOTALL)
# The fields that tell one writer's lines from another's.
_WRITER = re.compile(r"pod|container|host|node|worker|rank|process|instance|stream", re.IGNORECASE)
_DEEPEST = 8


def texts_of_record(line: str) -> list[tuple[str, str]] | None:
    """The texts in a line that is a JSON object, each with its stream; None if it is none.

    A stream is the field, with what stands before the object and what tells who wrote it: the
    lines of one message are of one stream.
    """
    match = _OBJECT.fullmatch(line)
    if match is None:
        return None
    try:
        # A large number must not cost time, and none is needed.
        record = json.loads(match["object"], parse_int=str, parse_float=str)
    except (ValueError, RecursionError):
        return None
    fields = list(_fields(record, "", _DEEPEST))
    writer = [field for field in fields if _WRITER.search(field[0].rpartition("/")[2])]
    texts = [
        ("\0".join([match["before"], name, *(f"{n}={t}" for n, t in writer if n != name)]), text)
        for name, text in fields
    ]
    return texts or None


def _fields(value: Any, name: str, deepest: int) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        # Half of a surrogate pair is no text that can be stored.
        yield name, value.encode(errors="replace").decode()
    elif isinstance(value, dict) and deepest:
        for key, inner in value.items():
            yield from _fields(inner, f"{name}/{key}", deepest - 1)
