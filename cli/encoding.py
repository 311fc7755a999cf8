"""ASCII in place of characters that the encoding of a terminal lacks: C and Latin-1 locales."""

import codecs
import unicodedata

# One character for one, so that the columns of a table and the bars of a chart stay in line.
_ASCII = str.maketrans(
    "≈…→×±·•–—−‘’“”²µ▁▂▃▄▅▆▇█●▲▼■◆○◯△□◇✕━─│╭╮╰╯┌┐└┘├┤┬┴┼",  # noqa: RUF001
    "~.>x+.*---''\"\"2u_.:-=+*#*^v#+oOAoxx--|+++++++++++++",
    "\u200b",
)
_ERRORS = "memhouse.ascii"


def replace_unencodable(*streams: object) -> None:
    """Have text streams write ASCII for what their encoding lacks, in place of an exception."""
    codecs.register_error(_ERRORS, _replace)
    for stream in streams:
        # Under `pytest -s` and the like it may be any object.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors=_ERRORS)


def _replace(error: UnicodeError) -> tuple[str, int]:
    """The handler of an encoding error, see `codecs.register_error`."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text = error.object[error.start : error.end].translate(_ASCII)
    return "".join(map(_ascii, text)), error.end


def _ascii(character: str) -> str:
    if character.isascii():
        return character
    # 名 takes two cells of a terminal.
    return "??" if unicodedata.east_asian_width(character) in "WF" else "?"
