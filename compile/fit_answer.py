"""What a fit found: for each topology a sentence, for each point a row, the knee first."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from ..schema.errors import UsageError
from ..schema.readable import human_bytes
from ..schema.store import Store
from .fit import (
    MAGNITUDE,
    Point,
    as_edge,
    device_name,
    is_recomputing,
    judged,
    points_of,
    work,
)
from .fit_axes import Asked, Axis, Value
from .fit_search import WORK_TOLERANCE, bracket
from .fit_worker import TARGET_SUFFIX

Policies = Mapping[str, Sequence[tuple[int, float, float]]]
_STORED = """
SELECT fit.value AS name, fit.run_id, topology.value AS topology, point.value AS point
FROM run_labels AS fit
INNER JOIN runs ON runs.run_id = fit.run_id
INNER JOIN run_labels AS topology ON topology.run_id = fit.run_id AND topology.key = 'topology'
INNER JOIN run_labels AS point ON point.run_id = fit.run_id AND point.key = 'fit_point'
WHERE fit.key = 'fit'
ORDER BY runs.run_seq
"""


class Answer(NamedTuple):
    """What was found: in sentences, as rows, and, where work differs, policy by policy.

    policies: by the topology and the other keywords, the sizes that fit, upwards: the size, the
    bytes of a sample, which are its reserved_bytes over the size, and the work of a sample in
    percent above the least, see the rows' `work_change_ratio`; searched: the keyword whose largest
    value is searched.
    """

    table: pa.Table
    sentences: Sequence[str]
    policies: Policies
    searched: str


@dataclass(frozen=True)
class _Combination:
    """The points of one topology and one choice of the keywords that are not searched.

    knee: the largest that fits without recomputing; edge: the largest that fits; refuser: the next
    larger one that does not.
    """

    topology: str
    fixed: Mapping[str, Value]
    points: Sequence[Point]
    searched: str
    sizes: range

    @property
    def edge(self) -> Point | None:
        fitting = [point for point in self.points if point.outcome == "fits"]
        return max(fitting, key=self.size, default=None)

    @property
    def knee(self) -> Point | None:
        fitting = [
            point
            for point in self.points
            if point.outcome == "fits" and not is_recomputing(point, self.points, self.searched)
        ]
        return max(fitting, key=self.size, default=None)

    @property
    def refuser(self) -> Point | None:
        _, upper = bracket([as_edge(p, self.points, self.searched) for p in self.points])
        return next((point for point in self.points if self.size(point) == upper), None)

    def size(self, point: Point) -> int:
        """The value of the keyword that is searched."""
        return point.size(self.searched)

    def __str__(self) -> str:
        return " ".join(f"{name}={value}" for name, value in self.fixed.items())


def answer(asked: Asked, points: Sequence[Point]) -> Answer:
    """What the points say.

    Rows: topology, the keywords; answer: knee or largest; outcome; reserved_bytes, peak_bytes,
    capacity_bytes, headroom_bytes; gflops, of one run of the program on a device; extra_work_ratio:
    of all devices, above the program as it is written; work_change_ratio, of a sample against the
    least of the knees of its topology; seconds, of the compile; is_new: compiled now; run; message.
    """
    if asked.searched is None:
        return Answer(_table(asked, points, {}, {}), [], {}, "")
    sizes = asked.axes[asked.searched]
    assert isinstance(sizes, range)
    combinations = [
        _Combination(topology, fixed, there, asked.searched, sizes)
        for topology, fixed in asked.combinations()
        if (there := points_of(points, topology, fixed))
    ]
    least: dict[str, float] = {}
    for combination in combinations:
        of_knee = combination.knee and work(combination.knee, asked.searched)
        if of_knee:
            least[combination.topology] = min(of_knee, least.get(combination.topology, of_knee))
    answers: dict[int, str] = {}
    for combination in combinations:
        for name, point in (("largest", combination.edge), ("knee", combination.knee)):
            if point is not None:
                answers[id(point)] = name
    return Answer(
        _table(asked, points, answers, least),
        list(_sentences(asked, combinations, least)),
        _policies(combinations, least),
        asked.searched,
    )


def stored(store: Store, program: str) -> tuple[Asked, list[Point]]:
    """What was asked of a program, and its points, the newest of each size, from the warehouse.

    program: FILE.py:FUNCTION, or the label `fit` of its runs. Raises UsageError.
    """
    target, _, function = program.partition(":")
    name = Asked(target, function or "build", {}, []).name
    every = store.rows(_STORED, []).to_pylist()
    points = [{**row, **json.loads(row["point"])} for row in every if row["name"] == name]
    if not points:
        others = ", ".join(sorted({row["name"] for row in every})) or "none"
        raise UsageError(f"no fit of {name} is stored, but of {others}", "fit")
    newest = points[-1]
    points = [each for each in points if each["arguments"].keys() == newest["arguments"].keys()]
    axes: dict[str, Axis] = {
        keyword: list(dict.fromkeys(each["arguments"][keyword] for each in points))
        for keyword in newest["arguments"]
    }
    if searched := newest["searched"]:
        sizes = [each["arguments"][searched] for each in points]
        axes[searched] = range(min(sizes), max(sizes) + 1)
    memory = {_topology(each["topology"]): each["memory"] for each in points}
    asked = Asked(target, function or "build", axes, list(memory))
    found = {}
    for each in points:
        topology, arguments = _topology(each["topology"]), each["arguments"]
        of_topology = replace(asked, memory_bytes=memory[topology])
        found[topology, *arguments.values()] = judged(
            store, each["run_id"], topology, arguments, each, of_topology
        )
    return asked, list(found.values())


def _topology(device: str) -> str:
    """The topology that has this name: a GPU is named after its file."""
    is_gpu = device != "cpu" and ":" not in device
    return f"{device}{TARGET_SUFFIX}" if is_gpu else device


def _policies(combinations: Sequence[_Combination], least: Mapping[str, float]) -> Policies:
    """The policies whose work is known; none if no sample takes more work than another."""
    found = {}
    for each in combinations:
        if each.edge is None or each.topology not in least:
            continue
        found[f"{device_name(each.topology)} {each}".strip()] = [
            (
                size := each.size(point),
                point.reserved_bytes / size,
                100 * (own / least[each.topology] - 1),
            )
            for point in sorted(each.points, key=each.size)
            if point.outcome == "fits"
            and point.reserved_bytes is not None
            and (own := work(point, each.searched)) is not None
            # The work of much smaller sizes says nothing, see `is_recomputing`.
            and each.size(point) * MAGNITUDE >= each.size(each.edge)
        ]
    works = [own for points in found.values() for _, _, own in points]
    return found if works and max(works) - min(works) >= WORK_TOLERANCE else {}


def _sentences(
    asked: Asked, combinations: Sequence[_Combination], least: Mapping[str, float]
) -> Iterator[str]:
    for topology in asked.topologies:
        here = [each for each in combinations if each.topology == topology]
        if not here:
            continue
        device = device_name(topology)
        yield f"{device}: {'; '.join(_told(each, least.get(topology, 0.0)) for each in here)}"
        for each in here:
            knee, edge = each.knee, each.edge
            if knee is None or edge is None or edge is knee:
                continue
            of = f" with {each}" if each.fixed else ""
            more = _more_work(edge, asked.searched or "", least.get(topology, 0.0))
            yield (
                f"the largest that fits{of} is {asked.searched} {each.size(edge)},"
                f" {_room(edge)}, but it recomputes:{more}"
            )
        for each in here:
            if each.knee is not None and (each.knee.extra_work_ratio or 0.0) >= WORK_TOLERANCE:
                yield f"{device}: {_extra(each, each.knee)}"
        loops = {Path(loop).name for each in here if each.knee for loop in each.knee.counted_once}
        if loops:
            yield (
                f"{device}: the work has one turn of each loop whose turns are not known: "
                f"{', '.join(sorted(loops))}"
            )
    if not asked.reserve and any(each.edge for each in combinations):
        yield (
            "this is what XLA reserves; a runtime takes some more, which is not known here: "
            "--reserve 2% holds it back"
        )


def _extra(found: _Combination, knee: Point) -> str:
    """Work that the program does not have: `batch 80 takes +33 % … replicated over 8 devices`."""
    of = f" with {found}" if found.fixed else ""
    why = f"it is replicated over its {knee.devices} devices" if knee.devices > 1 else "XLA adds it"
    extra = 100 * (knee.extra_work_ratio or 0.0)
    return (
        f"{found.searched} {found.size(knee)}{of} takes +{extra:.3g} % work above"
        f" the program's own: {why}"
    )


def _told(found: _Combination, least: float) -> str:
    """One combination: `batch 80 with remat=none (1.97 GiB of 2.00 GiB; 88 does not fit)`."""
    of = f" with {found}" if found.fixed else ""
    knee, edge = found.knee, found.edge
    failed = next((point for point in found.points if point.outcome == "failed"), None)
    if failed is not None:
        at = f"{found.searched} {found.size(failed)}{of}"
        return f"{at} is no program that can be judged: {failed.message}"
    if knee is None or edge is None:
        smallest = min(found.points, key=found.size)
        if smallest.outcome == "given up":
            return f"{found.searched} {found.size(smallest)}{of} is given up: {smallest.message}"
        why = _room(smallest) if smallest.reserved_bytes is not None else smallest.message or ""
        return f"not even {found.searched} {found.size(smallest)}{of} fits ({why})"
    proof = ""
    if edge is knee:
        refuser = found.refuser
        is_largest = found.size(edge) == found.sizes[-1]
        proof = "; no larger one is asked for" if is_largest else "; larger ones were not tried"
        if refuser is not None:
            verb = "is given up" if refuser.outcome == "given up" else "does not fit"
            proof = f"; {found.size(refuser)} {verb}"
    more = _more_work(knee, found.searched, least)
    return f"{found.searched} {found.size(knee)}{of} ({_room(knee)}{proof}){more}"


def _room(point: Point) -> str:
    total, capacity = point.reserved_bytes or 0, point.capacity_bytes or 0
    return f"{human_bytes(total)} of {human_bytes(capacity)}"


def _more_work(point: Point, name: str, least: float) -> str:
    own = work(point, name)
    more = 100 * (own / least - 1) if own and least else 0.0
    return f" +{more:.3g} % work a sample" if more >= 0.05 else ""


def _table(
    asked: Asked, points: Sequence[Point], answers: Mapping[int, str], least: Mapping[str, float]
) -> pa.Table:
    order = {"knee": 0, "largest": 1, None: 2}
    rows = []
    for point in sorted(points, key=lambda point: order[answers.get(id(point))]):
        own = work(point, asked.searched) if asked.searched else None
        of = least.get(point.topology)
        headroom = None
        if point.reserved_bytes is not None and point.capacity_bytes is not None:
            headroom = point.capacity_bytes - point.reserved_bytes
        rows.append(
            {
                "topology": device_name(point.topology),
                **{name: point.arguments[name] for name in asked.axes},
                "answer": answers.get(id(point)),
                "outcome": point.outcome,
                "reserved_bytes": point.reserved_bytes,
                "peak_bytes": point.peak_bytes,
                "capacity_bytes": point.capacity_bytes,
                "headroom_bytes": headroom,
                "gflops": point.flops / 1e9 if point.flops is not None else None,
                "extra_work_ratio": point.extra_work_ratio,
                "unknown_loops": point.unknown_loops,
                "work_change_ratio": own / of - 1 if own and of else None,
                "seconds": point.seconds,
                "is_new": point.is_new,
                "run": point.run_id,
                "message": point.message,
            }
        )
    return pa.Table.from_pylist(rows)
