"""A headless Chromium that opens reports as a reader does: a mouse, a width, light or dark."""

import json
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_PROBES = (Path(__file__).parent / "page_probes.js").read_text()
# Chromium asks nothing of a network by itself, and leaves nothing behind.
_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
_CTRL = 2
_LOCAL = ("file:", "data:", "blob:", "about:")


def missing() -> str | None:
    """Why no report can be opened here; None if it can."""
    for command in ("chromium", "chromedriver"):
        if not shutil.which(command):
            return f"{command} is not installed"
    try:
        import selenium  # noqa: F401
    except ImportError:
        return "selenium is not installed"
    return None


@dataclass(frozen=True)
class Work:
    """CPU of the page's main thread: seconds of all tasks, and of scripts among them."""

    task_seconds: float
    script_seconds: float


@contextmanager
def browser() -> Iterator["Browser"]:
    """A browser with a fresh profile; `missing()` says why there may be none."""
    from selenium import webdriver
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.service import Service

    options = Options()
    options.binary_location = str(shutil.which("chromium"))
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        for flag in (*_FLAGS, f"--user-data-dir={profile}"):
            options.add_argument(flag)
        driver = webdriver.Chrome(options, Service(shutil.which("chromedriver")))
        driver.set_script_timeout(60)
        try:
            yield Browser(driver)
        finally:
            driver.quit()


class Browser:
    """A window of the browser. A page is open after `open`."""

    def __init__(self, driver: Any) -> None:
        self.driver = driver
        self._errors: list[str] = []
        self._requested: list[str] = []

    def open(
        self, page: Path, *, width: int = 1280, dark: bool = False, media: str = "screen"
    ) -> Work:
        """Open a page of a report and wait until its charts are drawn; the work that took.

        Raises AssertionError if the page is not ready after half a minute.
        """
        # A new tab has a new process, so that the page before has no part in the work.
        before = self.driver.current_window_handle
        self.driver.switch_to.new_window("tab")
        opened = self.driver.current_window_handle
        self.driver.switch_to.window(before)
        self.driver.close()
        self.driver.switch_to.window(opened)
        self.look(width=width, dark=dark, media=media)
        self._errors, self._requested = [], []
        self._read_logs(keep=False)
        self.driver.execute_cdp_cmd("Performance.enable", {"timeDomain": "threadTicks"})
        self.driver.get(page.resolve().as_uri())
        self._await_ready()
        work = self._work()
        self.driver.execute_script(f"{_PROBES}; window.probes = probes;")
        return work

    def look(self, *, width: int = 1280, dark: bool = False, media: str = "screen") -> None:
        """Change the window's width, the paper and the medium."""
        self.driver.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600},
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.driver.execute_cdp_cmd(
            "Emulation.setEmulatedMedia", {"media": media, "features": [scheme]}
        )

    def value(self, expression: str, *arguments: Any) -> Any:
        """What an expression of JavaScript gives; a promise is awaited.

        `arguments` are `given[0]` and so on.
        """
        code = f"const given = arguments; return (async () => ({expression}))();"
        return self.driver.execute_script(code, *arguments)

    def wait_for(self, expression: str, *arguments: Any, seconds: float = 5) -> Any:
        """The same, once it is true. Raises AssertionError if it does not become true."""
        until = time.monotonic() + seconds
        while not (found := self.value(expression, *arguments)):
            assert time.monotonic() < until, f"never true: {expression} {arguments}"
            self.next_frame()
        return found

    def next_frame(self) -> None:
        """Wait until what has changed is drawn."""
        self.value("await probes.nextFrame()")

    def console_errors(self) -> list[str]:
        """Errors and warnings of the console since the page was opened."""
        self._read_logs()
        return self._errors

    def network_requests(self) -> list[str]:
        """What the page asked of a network since it was opened."""
        self._read_logs()
        return self._requested

    def frame(self, chart: str) -> dict[str, float]:
        """Where a chart's frame lies in the window, scrolled into sight: left, top, size."""
        return self.value("probes.frame(given[0])", chart)

    def move(self, x: float, y: float) -> None:
        """Move the mouse."""
        self._mouse("mouseMoved", x, y)

    def click(self, x: float, y: float) -> None:
        """Click at a place of the window."""
        self.move(x, y)
        self._mouse("mousePressed", x, y, button="left", buttons=1, clickCount=1)
        self._mouse("mouseReleased", x, y, button="left", clickCount=1)
        self.next_frame()

    def drag(self, start: tuple[float, float], end: tuple[float, float], steps: int = 8) -> Work:
        """Drag from one place to another in steps, each drawn; the work of all moves."""
        self.move(*start)
        self._mouse("mousePressed", *start, button="left", buttons=1, clickCount=1)
        before = self._work()
        for step in range(1, steps + 1):
            x, y = (a + (b - a) * step / steps for a, b in zip(start, end, strict=True))
            self._mouse("mouseMoved", x, y, button="left", buttons=1)
            self.next_frame()
        after = self._work()
        self._mouse("mouseReleased", *end, button="left", clickCount=1)
        self.next_frame()
        return _less(after, before)

    def hover(self, places: list[tuple[float, float]]) -> Work:
        """Move the mouse over these places, each drawn; the work of all moves."""
        before = self._work()
        for place in places:
            self.move(*place)
            self.next_frame()
        return _less(self._work(), before)

    def zoom(self, x: float, y: float, turns: int = 3) -> None:
        """Turn the wheel with Ctrl held, which zooms a chart."""
        self.move(x, y)
        for _ in range(turns):
            self._mouse("mouseWheel", x, y, deltaX=0, deltaY=-240, modifiers=_CTRL)
            self.next_frame()

    def use_everything(self) -> None:
        """Use every control of the page, point all over its charts, and click there."""
        self.value("await probes.useControls()")
        for number in range(self.value("probes.chartCount()")):
            places = self.value("probes.placesOfChart(given[0])", number)
            self.hover(places)
            for place in places[::4]:
                self.click(*place)

    def print(self) -> bytes:
        """The page as a PDF."""
        from base64 import b64decode

        # An emulated medium would be that of the PDF too.
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
        printed = self.driver.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})
        return b64decode(printed["data"])

    def _mouse(self, kind: str, x: float, y: float, **options: Any) -> None:
        self.driver.execute_cdp_cmd(
            "Input.dispatchMouseEvent", {"type": kind, "x": x, "y": y} | options
        )

    def _work(self) -> Work:
        metrics = self.driver.execute_cdp_cmd("Performance.getMetrics", {})["metrics"]
        by_name = {metric["name"]: metric["value"] for metric in metrics}
        return Work(by_name["TaskDuration"], by_name["ScriptDuration"])

    def _await_ready(self) -> None:
        until = time.monotonic() + 30
        is_ready = "return document.documentElement.dataset.ready === 'yes'"
        while not self.driver.execute_script(is_ready):
            assert time.monotonic() < until, f"not drawn: {self.console_errors()}"
            time.sleep(0.05)
        # Bokeh draws after it says that it has embedded a chart.
        self.driver.execute_async_script(
            "const done = arguments[0];"
            "requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 100)))"
        )

    def _read_logs(self, keep: bool = True) -> None:
        """Take what the driver has noted; it forgets what it has told."""
        for entry in self.driver.get_log("browser"):
            if keep and entry["level"] in ("SEVERE", "WARNING"):
                self._errors.append(entry["message"])
        for entry in self.driver.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if keep and message["method"] == "Network.requestWillBeSent":
                url = message["params"]["request"]["url"]
                if not url.startswith(_LOCAL):
                    self._requested.append(url)


def _less(after: Work, before: Work) -> Work:
    return Work(
        after.task_seconds - before.task_seconds, after.script_seconds - before.script_seconds
    )
