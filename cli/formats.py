"""How rows can be printed."""

from typing import Literal

# A command that prints something else too names that next to these.
Format = Literal["table", "csv", "json", "markdown"]
# Formats of plain values: nothing is folded, rounded or truncated in them.
FOR_SCRIPTS = ("csv", "json")
