"""Where a text of a page may break into lines: not in a date, and in a long path after a slash."""

import re
from html import escape

_DATE = re.compile(r"\b\d{4}-\d\d-\d\d\b")
# A shorter text fits into its place as it is.
_LONG = 28


def unbroken(text: str) -> str:
    """The text as HTML: escaped, with its dates on one line and breaks after slashes."""
    safe = escape(text)
    if len(text) >= _LONG:
        safe = safe.replace("/", "/<wbr>")
    return _DATE.sub(r'<span class="short">\g<0></span>', safe)
