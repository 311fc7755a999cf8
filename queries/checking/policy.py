"""Limits of `memhouse check`: how much a figure may grow, how large it may be, and the like."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Literal

from ..arguments import size_bytes

Outcome = Literal["pass", "warn", "fail"]
_PERCENT = re.compile(r"^(\d+(?:\.\d+)?) ?%$")
_OF_DEVICE = re.compile(r"^(\d+(?:\.\d+)?) ?% of device$")


@dataclass(frozen=True)
class Threshold:
    """A number of bytes, or a percentage of something."""

    amount: float
    is_percent: bool
    text: str

    def of(self, base: float) -> float:
        """The threshold in bytes."""
        return base * self.amount / 100 if self.is_percent else self.amount


Thresholds = tuple[Threshold, ...]


def parse_growth(text: str) -> Threshold:
    """`2%` or `64MiB`. Raises ValueError."""
    if match := _PERCENT.match(text):
        return Threshold(float(match[1]), True, text)
    return _parse_size(text, "a percentage such as 2%")


def parse_size(text: str) -> Threshold:
    """`64MiB`. Raises ValueError."""
    return _parse_size(text)


def parse_most(text: str) -> Threshold:
    """`15GiB` or `95% of device`. Raises ValueError."""
    if match := _OF_DEVICE.match(text):
        return Threshold(float(match[1]), True, text)
    if _PERCENT.match(text):
        raise ValueError(f"{text!r} of what? write '{text} of device', or a size such as 15GiB")
    return _parse_size(text, "a part such as '95% of device'")


def _parse_size(text: str, other: str = "") -> Threshold:
    size = size_bytes(text)
    if size is None:
        expected = f"neither {other} nor a size" if other else "not a size"
        raise ValueError(f"{text!r} is {expected} such as 64MiB")
    return Threshold(size, False, text)


@dataclass(frozen=True)
class Limits:
    """What one workload is held to; a rule without thresholds is off.

    max_growth: over the run that it is held against; max_drift: over the lowest since the last
    accepted growth, None for the default; max_bytes: of the figure; max_padding: of the padding,
    a share of the peak or bytes; max_scoped_bytes: of the memory that a kernel takes for
    itself; lost_donation: of what is no longer donated, a share of the peak or bytes; new: what is
    said of a program without figures before, `pass` if it is merely not judged; gone: what is said
    of a program that is gone, None for the default.
    """

    max_growth: Thresholds = ()
    max_drift: Thresholds | None = None
    max_bytes: Thresholds = ()
    max_padding: Thresholds = ()
    max_scoped_bytes: Thresholds = ()
    lost_donation: Thresholds = ()
    new: Outcome = "pass"
    gone: Outcome | None = None

    @property
    def need_no_baseline(self) -> bool:
        """Whether they judge a program that is held against nothing: there are only sizes."""
        has_sizes = self.max_bytes or self.max_padding or self.max_scoped_bytes
        return bool(has_sizes and not (self.max_growth or self.max_drift))


DEFAULT_GROWTH = (parse_growth("1%"),)
DEFAULT_DRIFT = (parse_growth("3%"),)
DEFAULT_LOST_DONATION = (parse_growth("0.1%"),)


@dataclass(frozen=True)
class Policy:
    """What all workloads are held to; baseline: the default lineage's branch, if it is named;
    requires_baseline: a new program fails, whatever the limits say; sources: where the rules of
    all workloads are set, an option or a file, without those that are defaults; metric: the figure
    that is judged, if it is named."""

    default: Limits
    workloads: dict[str, Limits] = field(default_factory=dict)
    baseline: str | None = None
    requires_baseline: bool = False
    sources: dict[str, str] = field(default_factory=dict)
    metric: str | None = None

    def limits(self, workload: str) -> Limits:
        """A workload's own limits, else those of all."""
        found = self.workloads.get(workload, self.default)
        return replace(found, new="fail") if self.requires_baseline else found

    def rules(self, *, has_drift: bool, gone: Outcome, better_higher: bool) -> Iterator[str]:
        """The rules that are applied, each with its limit and where it is set.

        has_drift: a drift is judged without `max_drift`; gone: what becomes of a program that is
        gone without `gone`; better_higher: more of the figure is better, so no growth is judged.
        """
        limits = replace(self.default, gone=self.default.gone or gone)
        if self.requires_baseline:
            limits = replace(limits, new="fail")
        if limits.max_drift is None and has_drift and limits.max_growth:
            limits = replace(limits, max_drift=DEFAULT_DRIFT)
        left_out = ("max_growth", "max_bytes") if better_higher else ()
        for name, text in _written(limits):
            if name in left_out:
                continue
            if name == "max_drift" and self.default.max_drift is None:
                (drift,) = DEFAULT_DRIFT
                if any(not g.is_percent or g.amount > drift.amount for g in limits.max_growth):
                    text += " or max_growth, if that is more"
            yield f"{name} = {text} ({self.sources.get(name, 'default')})"
        usual = dict(_written(self.default))
        for workload, own in self.workloads.items():
            for name, text in _written(own):
                if usual.get(name) != text and name not in left_out:
                    yield f"{name} = {text} for workload {workload}"


def _written(limits: Limits) -> Iterator[tuple[str, str]]:
    """The rules that are on, with their limits as they are written."""
    for name, value in vars(limits).items():
        if isinstance(value, tuple):
            if value:
                yield name, " and ".join(limit.text for limit in value)
        elif value is not None and (name, value) != ("new", "pass"):
            yield name, value
