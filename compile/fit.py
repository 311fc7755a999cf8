"""Compiles a program in several sizes, to find the largest that fits a device; each is a run."""

import json
import re
import shutil
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import RLock
from typing import Any, Literal, TypeVar

from ..ingest.pipeline import ingest
from ..ingest.sources.lowered import dump_options, forget_folder
from ..ingest.workers import Workers
from ..schema.errors import UsageError, WarehouseBusyError
from ..schema.readable import human_bytes
from ..schema.store import Store
from . import fit_worker
from .fit_axes import Asked, Combination, Value
from .fit_compiler import ASK_AGAIN_SECONDS, EndedError, Lane
from .fit_search import RECOMPUTES_ABOVE, WORK_TOLERANCE, Sized, next_size

_T = TypeVar("_T")
Outcome = Literal["fits", "too large", "refused", "given up", "failed"]

# So narrow a bracket is an answer, unless it must be exact: the knee is no matter of a sample.
_EDGE_TOLERANCE, _KNEE_TOLERANCE = 1 / 1000, 1 / 32
# Sizes within this factor of the largest that fits are compared.
MAGNITUDE = 8
# Of a GPU's memory JAX's runtime takes this part, unless XLA_PYTHON_CLIENT_MEM_FRACTION says
# another: on an H100 of 85,017,493,504 bytes its limit was 63,763,906,560.
_JAX_SHARE_OF_GPU = 0.75
_UNUSUAL = re.compile(r"[^\w.+:=,-]+")
_KNOWN = "SELECT run_id FROM run_labels WHERE key = 'fit_content' AND value = $1 LIMIT 1"
_FIGURES = """
SELECT
    module_memory.reserved_bytes,
    module_memory.peak_bytes,
    COALESCE(dumps.device_memory_bytes, oom_reports.capacity_bytes) AS capacity_bytes,
    oom_reports.used_bytes,
    modules.flops,
    modules.unknown_loops,
    (
        SELECT LIST(DISTINCT COALESCE(
            loops.source_file || ':' || loops.source_line, loops.instruction
        ))
        FROM calls
        INNER JOIN instructions AS loops
            ON loops.module_id = calls.module_id AND loops.instruction_id = calls.instruction_id
        INNER JOIN computations
            ON computations.module_id = loops.module_id
                AND computations.computation = loops.computation
        WHERE calls.module_id = modules.module_id
            AND calls.attribute = 'body'
            AND calls.trip_count IS NULL
            AND computations.executions > 0
    ) AS counted_once,
    refused.value AS refused,
    CAST(seconds.value AS DOUBLE) AS seconds
FROM runs
LEFT JOIN dumps ON dumps.run_id = runs.run_id
LEFT JOIN modules ON modules.module_id = dumps.module_id
LEFT JOIN module_memory
    ON module_memory.module_id = dumps.module_id AND module_memory.memory_space = 0
LEFT JOIN oom_reports ON oom_reports.run_id = runs.run_id
LEFT JOIN run_labels AS refused
    ON refused.run_id = runs.run_id AND refused.key = 'fit_refused'
LEFT JOIN run_labels AS seconds
    ON seconds.run_id = runs.run_id AND seconds.key = 'fit_seconds'
WHERE runs.run_id = $1
ORDER BY reserved_bytes DESC NULLS LAST
LIMIT 1
"""


@dataclass(frozen=True)
class Point:
    """A program in one size, and what became of it.

    arguments: the keywords with which it was built; reserved_bytes: what counts, without what is
    thread-local, as in the headroom of `peaks`; flops: of a device; program_flops: of the program
    as it is written, over all `devices`, None if it has loops that end when they end; counted_once:
    where the loops are whose turns are not known; seconds: of the compile, now or when it was made;
    is_new: it was compiled now; message: why it has no figures, or XLA's own words.
    """

    topology: str
    arguments: Mapping[str, Value]
    outcome: Outcome
    run_id: str | None = None
    reserved_bytes: int | None = None
    peak_bytes: int | None = None
    capacity_bytes: int | None = None
    flops: int | None = None
    program_flops: int | None = None
    devices: int = 1
    unknown_loops: int | None = None
    counted_once: Sequence[str] = ()
    seconds: float | None = None
    is_new: bool = False
    message: str | None = None

    def size(self, searched: str) -> int:
        """The value of the keyword that is searched."""
        return int(self.arguments[searched])

    @property
    def extra_work_ratio(self) -> float | None:
        """The work of all devices above the program's own, over that: done again, or on several."""
        if not self.program_flops or self.flops is None:
            return None
        return self.flops * self.devices / self.program_flops - 1


class _SpentError(Exception):
    """The budget is spent."""


class Fit:
    """Compiles what is asked, into a warehouse.

    opening: opens the warehouse to write, for one point; wait: so many seconds, if another process
    has it; progress: is told a line a point.
    `points` are those so far, also if the search is interrupted; `problems` say what was left out.
    """

    def __init__(
        self,
        asked: Asked,
        opening: Callable[[], AbstractContextManager[Store]],
        *,
        tool_version: str,
        wait: float = 0,
        progress: Callable[[str], None] = lambda line: None,
    ) -> None:
        _check(asked)
        self.asked = asked
        self.points: list[Point] = []
        self.problems: list[str] = []
        self._opening = opening
        self._tool_version = tool_version
        self._wait = wait
        self._progress = progress
        self._compiles = 0
        self._is_spent = False
        # Held while the warehouse is used, a point is told, or a compile is counted.
        self._lock = RLock()

    def run(self) -> None:
        """Search each combination. Raises FitError if the function or the compiler do not load."""
        combinations = list(self.asked.combinations())
        left = deque(combinations)
        with TemporaryDirectory(prefix="memhouse-fit-", ignore_cleanup_errors=True) as folder:
            self._folder = Path(folder)
            lanes = [
                Lane(self.asked, self._folder / f"worker-{number}.log")
                for number in range(min(self.asked.jobs, len(combinations)))
            ]
            try:
                if len(lanes) == 1:
                    self._work_off(lanes[0], left)
                else:
                    self._at_once(lanes, left)
            finally:
                for lane in lanes:
                    lane.stop()
        if self._is_spent:
            self.problems.append(
                f"the budget of {self.asked.budget} compiles is spent: the search is not at its end"
            )
        order = {
            id(p): n for n, each in enumerate(combinations) for p in points_of(self.points, *each)
        }
        self.points.sort(key=lambda point: order[id(point)])

    def _work_off(self, lane: Lane, left: deque[Combination]) -> None:
        """Search one combination after the other, until none is left or the budget is spent."""
        for topology, fixed in _taken(left):
            try:
                self._search(lane, topology, fixed)
            except _SpentError:
                self._is_spent = True
                left.clear()

    def _at_once(self, lanes: Sequence[Lane], left: deque[Combination]) -> None:
        """Search one in each lane at once; the first that fails ends all, as an interrupt does."""
        with ThreadPoolExecutor(len(lanes)) as threads:
            try:
                for done in as_completed(
                    [threads.submit(self._work_off, lane, left) for lane in lanes]
                ):
                    done.result()
            finally:
                left.clear()
                for lane in lanes:
                    lane.end()

    def _search(self, lane: Lane, topology: str, fixed: Mapping[str, Value]) -> None:
        """Find the largest size that fits, then the largest without recomputed work."""
        name = self.asked.searched
        if name is None:
            self._try(lane, topology, fixed)
            return
        sizes = self.asked.axes[name]
        assert isinstance(sizes, range)
        tried: list[Point] = []

        def search(
            goal: Callable[[Point, Sequence[Point], str], Sized], share: float, tolerance: float
        ) -> None:
            while all(point.outcome != "failed" for point in tried):
                capacity = next((p.capacity_bytes for p in tried if p.capacity_bytes), 0)
                held = int(capacity * (1 - self.asked.reserve) * share)
                points = [goal(point, tried, name) for point in tried]
                size = next_size(points, sizes, held, tolerance=tolerance)
                if size is None:
                    return
                tried.append(self._try(lane, topology, {name: size, **fixed}))

        search(as_edge, 1.0, 0.0 if self.asked.is_exact else _EDGE_TOLERANCE)
        while (reference := _reference(tried, sizes, name)) is not None:
            tried.append(self._try(lane, topology, {name: reference, **fixed}))
        search(_as_knee, RECOMPUTES_ABOVE, _KNEE_TOLERANCE)

    def _try(self, lane: Lane, topology: str, arguments: Mapping[str, Value]) -> Point:
        """Compile a point, or find it in the warehouse."""
        in_order = {name: arguments[name] for name in self.asked.axes}
        try:
            point = self._compiled(lane, topology, in_order)
        except EndedError as ended:
            lane.stop()
            lane.require()
            outcome: Outcome = "given up" if ended.is_limit else "failed"
            point = Point(topology, in_order, outcome, message=str(ended))
        with self._lock:
            self.points.append(point)
            self._progress(self._line(point))
        return point

    def _compiled(self, lane: Lane, topology: str, arguments: dict[str, Value]) -> Point:
        worker = lane.ready(topology)
        known = worker.ask({"arguments": arguments})
        if "failed" in known:
            return Point(topology, arguments, "failed", message=known["failed"])
        content = known["content"]

        def lookup(store: Store) -> Point | None:
            found = store.rows(_KNOWN, [content])["run_id"].to_pylist()
            return (
                judged(store, found[0], topology, arguments, known, self.asked) if found else None
            )

        point = self._when_free(lane, lookup)
        if point is not None:
            return point
        with self._lock:
            if self.asked.budget is not None and self._compiles >= self.asked.budget:
                raise _SpentError
            self._compiles += 1
        folder = Path(tempfile.mkdtemp(dir=self._folder))
        done = worker.ask({"options": dump_options(folder, known["module"])})
        if "failed" in done:
            return Point(topology, arguments, "failed", message=done["failed"])
        forget_folder(folder)
        if done["refused"]:
            (folder / "compile.log").write_text(done["refused"] + "\n", encoding="utf-8")
        device = device_name(topology)
        said = ",".join(f"{name}={value}" for name, value in arguments.items())
        run_id = _UNUSUAL.sub("_", f"fit-{self.asked.name}-{device}-{said}-{content[:8]}")
        labels = {name: str(value) for name, value in arguments.items()} | lane.versions
        labels |= {
            "topology": device,
            "fit": self.asked.name,
            "fit_content": content,
            "fit_seconds": f"{done['seconds']:.1f}",
            "fit_point": json.dumps(
                {
                    "arguments": arguments,
                    "searched": self.asked.searched,
                    "memory": self.asked.memory_bytes,
                    "flops": known["flops"],
                    "devices": known["devices"],
                }
            ),
            # A history of its own: no size is what another one was before.
            "branch": "fit",
            "suite": run_id,
        }
        if done["refused"]:
            labels["fit_refused"] = done["refused"].splitlines()[0][:300]

        def stored(store: Store) -> Point:
            with Workers(1) as workers:
                ingest(
                    store,
                    folder,
                    tool_version=self._tool_version,
                    workers=workers,
                    run_id=run_id,
                    labels=labels,
                    replaces=True,
                    device_memory_bytes=self.asked.memory_bytes,
                    source=f"{self.asked.target}:{self.asked.function}",
                )
            found = judged(store, run_id, topology, arguments, known, self.asked)
            return replace(found, is_new=True)

        point = self._when_free(lane, stored)
        shutil.rmtree(folder)
        return point

    def _when_free(self, lane: Lane, use: Callable[[Store], _T]) -> _T:
        """What `use` gives of the warehouse, once no other process has it.

        However long that takes, if something was compiled: that is not to be lost. Before, it
        raises WarehouseBusyError after `wait` seconds.
        """
        begun, is_told = time.monotonic(), False
        while True:
            with self._lock:
                try:
                    with self._opening() as store:
                        return use(store)
                except WarehouseBusyError as busy:
                    if not self._compiles and time.monotonic() - begun >= self._wait:
                        raise
                    if not is_told:
                        self._progress(f"{busy.in_use}: waiting for it")
                    is_told = True
            lane.require()
            time.sleep(ASK_AGAIN_SECONDS)

    def _line(self, point: Point) -> str:
        """What became of a point, and how many compiles there were."""
        what = " ".join(f"{name}={value}" for name, value in point.arguments.items())
        how = "known" if point.run_id and not point.is_new else f"{point.seconds or 0:.1f} s"
        said = point.message or ""
        if point.reserved_bytes is not None and point.capacity_bytes is not None:
            said = f"{human_bytes(point.reserved_bytes)} of {human_bytes(point.capacity_bytes)}"
        of = "" if self.asked.budget is None else f" of at most {self.asked.budget}"
        count = f"{self._compiles}{of} compile{'s' * (self._compiles != 1)}"
        return f"{device_name(point.topology)} {what}: {point.outcome}, {said} ({how}; {count})"


def judged(
    store: Store,
    run_id: str,
    topology: str,
    arguments: Mapping[str, Value],
    known: Mapping[str, Any],
    asked: Asked,
) -> Point:
    """A stored point, by its figures, and by what is known of its program."""
    (row,) = store.rows(_FIGURES, [run_id]).to_pylist()
    used, refused = row.pop("used_bytes"), row.pop("refused")
    reserved = row.pop("reserved_bytes")
    counted_once = sorted(row.pop("counted_once") or ())
    reserved = used if reserved is None else reserved
    # What the user says of the memory holds; else what the device is known to have.
    capacity = row.pop("capacity_bytes")
    if capacity is not None and topology.endswith(fit_worker.TARGET_SUFFIX):
        capacity = int(capacity * _JAX_SHARE_OF_GPU)
    capacity = asked.memory_bytes or capacity
    outcome: Outcome = "fits"
    message = None
    if refused is not None:
        outcome, message = "refused", refused
    elif reserved is None or capacity is None:
        unknown = "capacity" if capacity is None else "total"
        outcome, message = "failed", f"nothing says the {unknown} of this program"
    elif reserved > capacity * (1 - asked.reserve):
        outcome = "too large"
    return Point(
        topology,
        arguments,
        outcome,
        run_id,
        reserved,
        capacity_bytes=capacity,
        program_flops=known["flops"],
        devices=known["devices"],
        counted_once=counted_once,
        message=message,
        **row,
    )


def _check(asked: Asked) -> None:
    """Raise UsageError for what cannot be searched."""
    ranges = {name: axis for name, axis in asked.axes.items() if isinstance(axis, range)}
    if len(ranges) > 1:
        raise UsageError(
            f"one keyword is searched, found {' and '.join(ranges)}: list the values of the others"
        )
    for name, sizes in ranges.items():
        if not sizes or sizes[0] < 1 or sizes.step < 1:
            raise UsageError(f"the range of {name} has no size from 1 on: write 1..512")
    if not asked.topologies:
        raise UsageError("name what to compile for", "topology")
    for topology in asked.topologies:
        if topology.endswith(fit_worker.TARGET_SUFFIX) and not Path(topology).is_file():
            raise UsageError(f"there is no file {topology}", "topology")
    if asked.memory_bytes is None and any(t.partition(":")[0] == "cpu" for t in asked.topologies):
        raise UsageError("say how much memory a program may use of the CPU's", "memory")


def _taken(left: deque[Combination]) -> Iterator[Combination]:
    """One after the other, of those that other threads take too."""
    while left:
        try:
            yield left.popleft()
        except IndexError:
            # Another thread took the last one.
            return


def as_edge(point: Point, _: Sequence[Point], name: str) -> Sized:
    """A point as a size that fits or does not, for the search of the largest."""
    fits = point.outcome == "fits"
    return Sized(point.size(name), point.reserved_bytes, fits, work(point, name))


def _as_knee(point: Point, tried: Sequence[Point], name: str) -> Sized:
    """A point as a size that fits without recomputing: the law of one that does is another."""
    fits = point.outcome == "fits" and not is_recomputing(point, tried, name)
    return Sized(point.size(name), point.reserved_bytes if fits else None, fits)


def _reference(tried: Sequence[Point], sizes: range, name: str) -> int | None:
    """A size whose work the edge's can be held against; None if none is needed, or no more.

    It is half of the edge, where little memory is to be saved by recomputing; or a quarter, if half
    takes more work than the smallest. What is near the edge may all recompute.
    """
    works = {p.size(name): work(p, name) or 0.0 for p in tried if p.outcome == "fits" and p.flops}
    if not works or any(point.outcome == "failed" for point in tried):
        return None
    edge = max(works)
    least = min(works.values()) * (1 + WORK_TOLERANCE)
    if any(own <= least for size, own in works.items() if edge <= size * MAGNITUDE):
        return None
    for part in (2, 4):
        below = range(sizes.start, edge // part + 1, sizes.step)
        if below and below[-1] not in works:
            return below[-1]
    return None


def points_of(points: Sequence[Point], topology: str, fixed: Mapping[str, Value]) -> list[Point]:
    """The points of a combination."""
    return [p for p in points if p.topology == topology and fixed.items() <= p.arguments.items()]


def device_name(topology: str) -> str:
    """How a topology is called: v5e:2x2, or h100 for the file that describes it."""
    return Path(topology).name.removesuffix(fit_worker.TARGET_SUFFIX)


def work(point: Point, name: str) -> float | None:
    """The FLOPs a sample; None if they are not known."""
    return point.flops / point.size(name) if point.flops else None


def is_recomputing(point: Point, tried: Sequence[Point], name: str) -> bool:
    """Whether a point takes more work a sample than the least of those of its magnitude.

    What is much smaller than the largest that fits says nothing: of a batch of one, products of
    two vectors are no dots.
    """
    fitting = [p for p in tried if p.flops and p.outcome == "fits"]
    edge = max((p.size(name) for p in fitting), default=0)
    near = [work(p, name) or 0.0 for p in fitting if p.size(name) * MAGNITUDE >= edge]
    own = work(point, name)
    if own is None or not near or point.size(name) * MAGNITUDE < edge:
        return False
    return own > min(near) * (1 + WORK_TOLERANCE)
