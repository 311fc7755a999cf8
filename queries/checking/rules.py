"""The rules of `check`: which of them a program breaks."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from ...schema.metric_names import BETTER_HIGHER
from ..cells import human_bytes
from .accepted import Accepted, Value
from .thresholds import DEFAULT_CREEP, Limits, Threshold, Thresholds
from .verdict import Breach

_Row = dict[str, Any]
ALIAS, PEAK = "alias_bytes", "peak_bytes"


def is_better_higher(metric: str) -> bool:
    """Whether more of a metric is better: then a fall breaks the rules."""
    return metric in BETTER_HIGHER


@dataclass(frozen=True)
class Judged:
    """A program to judge. now: its row of `check_now`; held: what it is held against, a row of
    `check_held`; creep_is_on: a creep is judged even if the limits do not ask for it;
    base_branch: the default lineage's branch, if the program is held against its base."""

    now: _Row
    held: _Row | None
    metric: str
    limits: Limits
    accepted: Accepted
    creep_is_on: bool
    base_branch: str | None = None

    @property
    def has_baseline(self) -> bool:
        """Whether there are figures to hold the program against."""
        return self.held is not None and self.held["value_bytes"] is not None

    def floor(self, metric: str) -> Value | None:
        """The value accepted since the run that the program is held against."""
        if self.held is None:
            return None
        held_series, place = self.held["series_id"], self.held["place"]
        return self.accepted.since(metric, self.now["series_id"], held_series, place)

    def most_accepted(self, metric: str) -> Value | None:
        """The largest value that was ever accepted: it is within all limits."""
        held_series = None if self.held is None else self.held["series_id"]
        found = self.accepted.among(metric, self.now["series_id"], held_series)
        return max(found, key=lambda value: value.accepted_bytes, default=None)


def find_breaches(judged: Judged) -> tuple[list[Breach], bool]:
    """The rules that a program breaks, and whether only its creep breaks one."""
    now, limits = judged.now, judged.limits
    found = [Breach("XLA ran out of memory")] if now["oom"] else []
    if now["value_bytes"] is None and now["status"] != "ok":
        return [*found, Breach(f"the dump is {now['status']}")], False
    if (
        limits.new != "pass"
        and not judged.has_baseline
        and judged.most_accepted(judged.metric) is None
    ):
        found.append(Breach("new", judged.metric, now["value_bytes"], limits.new))
    if now["value_bytes"] is None:
        # HLO text alone is a whole dump without figures: nothing to judge.
        return found, False
    growth = _growth(judged)
    creep = [] if growth else _creep(judged)
    found += growth + creep
    absolute = _absolute(judged)
    if judged.metric != ALIAS:
        absolute += _lost_donation(judged)
    return found + absolute, bool(creep)


def find_waiver(judged: Judged, breaches: Sequence[Breach]) -> str | None:
    """Why the program passes though it breaks a rule: the reasons that were accepted."""
    if breaches or not judged.accepted.values:
        return None
    waived, _ = find_breaches(replace(judged, accepted=Accepted(())))
    reasons = [
        value.reason
        for metric in dict.fromkeys(breach.metric for breach in waived if breach.metric)
        if (value := judged.floor(metric) or judged.most_accepted(metric))
    ]
    return "; ".join(dict.fromkeys(reasons)) or None


def _growth(judged: Judged) -> list[Breach]:
    """Over the run that it is held against, or what was accepted since."""
    now, held, metric = judged.now["value_bytes"], judged.held, judged.metric
    if held is None or held["value_bytes"] is None:
        return []
    before = held["value_bytes"]
    if floor := judged.floor(metric):
        before = _worse(metric, before, floor.accepted_bytes)
    if is_better_higher(metric):
        peak = judged.now["peak_bytes"] or 0
        return [
            Breach(f"fell by more than {_of(limit, 'the peak')}", metric, now)
            for limit in judged.limits.lost_donation
            if before - now > limit.of(peak)
        ]
    return [
        Breach(f"grew by more than {limit.text}", metric, now)
        for limit in judged.limits.max_growth
        if now - before > limit.of(before)
    ]


def _creep(judged: Judged) -> list[Breach]:
    """Over the lowest since the last accepted growth."""
    now, held, metric = judged.now["value_bytes"], judged.held, judged.metric
    if held is None or None in (held["least_bytes"], held["value_bytes"]):
        return []
    before, lowest, run = held["value_bytes"], held["least_bytes"], held["least_run_id"]
    if floor := judged.floor(metric):
        lowest, run = floor.accepted_bytes, floor.run_id
    verb = "fell" if is_better_higher(metric) else "grew"
    sign = -1 if is_better_higher(metric) else 1
    found = []
    for limit in _creep_limits(judged, lowest):
        text = f"{verb} by more than {limit.text} since {run}"
        if sign * (now - lowest) <= limit.of(lowest):
            continue
        # A pull request does not answer for what its base has.
        if judged.base_branch is not None and sign * (before - lowest) > limit.of(lowest):
            base = judged.base_branch or "the base"
            found.append(Breach(f"{base} already {text}", metric, now, "warn"))
        else:
            found.append(Breach(text, metric, now))
    return found


def _creep_limits(judged: Judged, lowest: int) -> Thresholds:
    """What a creep is held to. The default is never stricter than the limits of growth."""
    limits = judged.limits
    if limits.max_creep is not None:
        return limits.max_creep
    if not judged.creep_is_on or not limits.max_growth:
        return ()
    growth = min(limits.max_growth, key=lambda limit: limit.of(lowest))
    return (max(*DEFAULT_CREEP, growth, key=lambda limit: limit.of(lowest)),)


def _lost_donation(judged: Judged) -> list[Breach]:
    """Arguments that were donated and are still there, but are no longer donated.

    Smaller arguments are donated less: that is not lost. So what counts is also how much more of
    the arguments is not donated.
    """
    now, held = judged.now, judged.held
    if held is None or None in (held[ALIAS], now[ALIAS], now["peak_bytes"]):
        return []
    donated, kept = held[ALIAS], held["argument_bytes"] - held[ALIAS]
    if floor := judged.floor(ALIAS):
        donated = min(donated, floor.accepted_bytes)
    lost = min(donated - now[ALIAS], now["argument_bytes"] - now[ALIAS] - kept)
    return [
        Breach(f"lost the donation of {human_bytes(lost)}", ALIAS, now[ALIAS])
        for limit in judged.limits.lost_donation
        if lost > limit.of(now["peak_bytes"])
    ]


def _absolute(judged: Judged) -> list[Breach]:
    """Rules that need nothing to hold the program against."""
    now, limits, metric = judged.now, judged.limits, judged.metric
    found = []
    if not is_better_higher(metric):
        device = now["device_memory_bytes"]
        for limit in limits.max_bytes:
            if limit.is_percent and device is None:
                found.append(
                    Breach("the device's memory is not known: see memhouse ingest --device-memory")
                )
            elif limit.is_percent and metric == PEAK and now["reserved_bytes"] is not None:
                # A program has to fit with all its allocations, not only with its peak.
                text = f"reserves more than {limit.text}"
                most = limit.of(device or 0)
                found += _over(judged, "total_bytes", now["reserved_bytes"], most, text)
            else:
                text = f"is over {limit.text}"
                found += _over(judged, metric, now["value_bytes"], limit.of(device or 0), text)
    for limit in limits.max_padding:
        text = f"padding is over {_of(limit, 'the peak')}"
        most = limit.of(now["peak_bytes"] or 0)
        found += _over(judged, "padding_bytes", now["padding_bytes"], most, text)
    for limit in limits.max_scoped_bytes:
        text = f"a kernel reserves more than {limit.text}"
        found += _over(judged, "scoped_bytes", now["scoped_bytes"], limit.amount, text)
    return found


def _over(judged: Judged, metric: str, value: int | None, most: float, text: str) -> list[Breach]:
    """A breach if a value is over a limit, and over all that was accepted."""
    accepted = judged.most_accepted(metric)
    if (
        value is None
        or value <= most
        or (accepted is not None and value <= accepted.accepted_bytes)
    ):
        return []
    return [Breach(text, metric, value)]


def _worse(metric: str, a: int, b: int) -> int:
    return min(a, b) if is_better_higher(metric) else max(a, b)


def _of(limit: Threshold, whole: str) -> str:
    return f"{limit.text} of {whole}" if limit.is_percent else limit.text
