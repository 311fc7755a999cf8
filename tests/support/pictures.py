"""Makes the pictures of docs/pictures: parts of reports of the samples, as Chromium draws them.

`make pictures` runs it.
"""

import io
import sys
import tarfile
import tempfile
from base64 import b64decode
from pathlib import Path

import memhouse
from memhouse.tests.support.browser import Browser, browser, missing

_ROOT = Path(__file__).parents[2]
_SAMPLES = _ROOT / "tests" / "data"
_FOLDER = _ROOT / "docs" / "pictures"
_WIDTH = 1100
# Charts have few colours; a palette makes their files small.
_COLOURS = 96


def pages(folder: Path) -> dict[str, tuple[Path, str, str]]:
    """Each picture's page, and the first and the last element that it shows."""
    import zstandard

    with (
        (_SAMPLES / "nightly.tar.zst").open("rb") as packed,
        zstandard.ZstdDecompressor().stream_reader(packed) as stream,
        tarfile.open(fileobj=stream, mode="r|") as nights,
    ):
        nights.extractall(folder, filter="data")
    with memhouse.open(folder / "pictures.duckdb") as warehouse:
        for night in sorted((folder / "nightly").iterdir()):
            warehouse.ingest(night)
        reports = {
            "module": warehouse.report("llama-v5e", run="2026-10-01"),
            "history": warehouse.report_history(),
            "diff": warehouse.report_diff("2026-10-07", "2026-10-08", workload="llama-v5e"),
        }
        shown = {
            "module": ("header", "figure:has([data-model=address_map])"),
            "history": ("header", "section:nth-of-type(1)"),
            "diff": ("header", "figure:nth-of-type(1)"),
        }
        return {
            name: (report.save(folder / f"{name}.html"), *shown[name])
            for name, report in reports.items()
        }


def picture(window: Browser, page: Path, first: str, last: str) -> bytes:
    """A page from one element to another, in the colours of a palette."""
    from PIL import Image

    window.open(page, width=_WIDTH)
    place = (
        "(() => { const [first, last] = [...given].map((s) => document.querySelector(s))"
        ".map((e) => e.getBoundingClientRect());"
        "return [first.top + scrollY - 24, last.bottom + scrollY + 8]; })()"
    )
    top, bottom = window.value(place, first, last)
    clip = {"x": 0, "y": top, "width": _WIDTH, "height": bottom - top, "scale": 1}
    taken = window.driver.execute_cdp_cmd(
        "Page.captureScreenshot", {"format": "png", "clip": clip, "captureBeyondViewport": True}
    )
    image = Image.open(io.BytesIO(b64decode(taken["data"]))).convert("RGB")
    small = io.BytesIO()
    image.quantize(_COLOURS).save(small, "png", optimize=True)
    return small.getvalue()


def main() -> None:
    """Write every picture."""
    if why := missing():
        sys.exit(f"no pictures: {why}")
    _FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, browser() as window:
        for name, (page, first, last) in pages(Path(folder)).items():
            path = _FOLDER / f"{name}.png"
            path.write_bytes(picture(window, page, first, last))
            print(f"{path.relative_to(_ROOT)}: {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
