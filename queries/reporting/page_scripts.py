"""The scripts and styles of pages: memhouse's own, and bokeh's, in the page or from elsewhere."""

import gzip
from base64 import b64encode
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path

PAGES = Path(__file__).parent / "pages"


@dataclass(frozen=True)
class BokehScript:
    """Where a page has bokeh's script from: it is `packed` in the page, or at a `url`.

    origin: the host of the url as a policy names it; integrity: what the script must be.
    """

    packed: str = ""
    url: str = ""
    origin: str = ""
    integrity: str = ""


@cache
def page_file(name: str) -> str:
    """A file of `pages/`."""
    return (PAGES / name).read_text(encoding="utf-8")


def bokeh_script() -> bytes:
    """Bokeh's own script, that of the installed version."""
    from bokeh.settings import settings

    return (Path(settings.bokehjs_path()) / "js" / "bokeh.min.js").read_bytes()


@cache
def packed_bokeh() -> BokehScript:
    """Bokeh's script within the page: half a megabyte, but nothing is loaded."""
    return BokehScript(packed=packed(bokeh_script()))


def bokeh_beside(url: str) -> BokehScript:
    """Bokeh's script in a file beside the page: `url` is relative."""
    return BokehScript(url=url, origin="'self' file:")


def bokeh_for_cells() -> BokehScript:
    """Bokeh's script as bokeh's own setting `resources` says: `inline`, or else from its CDN.

    Each cell of a notebook is saved with all that it shows: ten with the script are 5 MB.
    """
    from bokeh.resources import CDN, get_sri_hashes_for_version
    from bokeh.settings import settings

    if settings.resources() == "inline":
        return packed_bokeh()
    folder, _, name = CDN.js_files[0].rpartition("/")
    digest = get_sri_hashes_for_version(version("bokeh"))[name]
    return BokehScript(url=f"{folder}/{name}", origin=f"{folder}/", integrity=f"sha384-{digest}")


def packed(content: bytes) -> str:
    """Bytes as text that stands in a page without being read as HTML."""
    # The time is left out, so that equal content is equal text. Level 9 takes ten times as long
    # for long columns, and saves 6 %.
    return b64encode(gzip.compress(content, 6, mtime=0)).decode()
