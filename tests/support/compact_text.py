"""HLO text as XLA prints it since JAX 0.12: elements of tuples within operands."""

import re

_GET = re.compile(r"  %(\S+) = .*? get-tuple-element\((?:[^%]* )?%([^ ,)]+)\), index=(\d+)")
_NAME = re.compile(r"%([A-Za-z0-9_.\-]+)")


def compacted(text: str) -> str:
    """The text without the get-tuple-elements that are operands only."""
    elements: dict[str, str] = {}
    lines = []
    for line in text.splitlines():
        if found := _GET.match(line):
            name, of, number = found.groups()
            elements[name] = f"{elements.get(of, of)}#{number}"
        else:
            lines.append(_NAME.sub(lambda use: f"%{elements.get(use[1], use[1])}", line))
    return "\n".join([*lines, ""])
