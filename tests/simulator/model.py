"""A warehouse as the documentation describes it, in plain Python.

A `Model` holds what must be in a warehouse after the commands that were given. It is written from
what users read (docs/reliability.md, docs/check.md, `memhouse COMMAND --help`), knows nothing of
tables or stores, and shares nothing with memhouse. A command is a method: it changes the model
and returns the exit status. Each commit is one entry of `commits`, so that a command that was
killed may leave the warehouse after any of them.
"""

import copy
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from .programs import Program

DONE, FAILED, WRONG_USAGE = 0, 1, 2
_LATER = re.compile(r"@\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(_\d+)?")
_DATE = re.compile(r"(\d{4}-\d\d-\d\d)(T\d\d:\d\d(?::\d\d)?(?:[+-]\d\d:\d\d)?)?")
_AGE = {"d": 1, "w": 7, "y": 365}
_FIRST = datetime(2015, 1, 1)


@dataclass(frozen=True, order=True)
class Name:
    """What tells a dump from the others of its run."""

    workload: str
    number: int
    module: str


# What a folder or an archive holds.
Dumped = Mapping[Name, Program]


@dataclass(frozen=True)
class Stored:
    """A dump in the warehouse."""

    program: Program
    host: str


@dataclass(frozen=True)
class Part:
    """What one host ingested, or all that was ingested without a host."""

    source: str
    entered_at: datetime


@dataclass
class Run:
    """A run. seq: the order in which runs entered."""

    seq: int
    entered_at: datetime
    source: str
    claimed_at: datetime | None = None
    compiled_at: datetime | None = None
    labels: dict[str, str] = field(default_factory=dict)
    parts: dict[str, Part] = field(default_factory=dict)
    dumps: dict[Name, Stored] = field(default_factory=dict)

    @property
    def at(self) -> datetime:
        """When it happened, by what the user claims; else when it entered."""
        return self.claimed_at or self.entered_at

    @property
    def place(self) -> tuple[datetime, int]:
        """Sorts runs."""
        return self.at, self.seq

    def dumps_of(self, host: str) -> dict[Name, Stored]:
        """The dumps of one part."""
        return {name: dump for name, dump in self.dumps.items() if dump.host == host}


@dataclass(frozen=True)
class Accepted:
    """A peak that was accepted."""

    run: str
    name: Name
    peak_bytes: int
    reason: str


@dataclass(frozen=True)
class Given:
    """What one run of an ingest is given.

    name: the run's, or the path's; dumped: what the paths hold; newest: the time of the newest
    file; lacks_paths: some paths are not there.
    """

    name: str
    is_named: bool
    source: str
    dumped: Dumped
    newest: datetime | None
    host: str = ""
    at: datetime | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    replaces: bool = False
    lacks_paths: bool = False


@dataclass
class Model:
    """A warehouse; `exists` is whether anything ever made it."""

    exists: bool = False
    runs: dict[str, Run] = field(default_factory=dict)
    journal: list[tuple[str, str | None, str | None, datetime]] = field(default_factory=list)
    accepted: list[Accepted] = field(default_factory=list)
    commits: list["Model"] = field(default_factory=list)

    def copy(self) -> "Model":
        """The same, to change; without what led to it."""
        return copy.deepcopy(replace(self, commits=[]))

    def _commit(self) -> None:
        self.commits.append(self.copy())

    def _enter(self, now: datetime, action: str, run: str | None, host: str = "") -> None:
        self.journal.append((action, run, host or None, now))

    def in_order(self) -> list[str]:
        """The runs, the oldest first."""
        return sorted(self.runs, key=lambda run: self.runs[run].place)

    # -- ingest ----------------------------------------------------------------------------

    def ingest(self, given: Given, now: datetime) -> int:
        """`memhouse ingest` of one run."""
        claimed = given.at or date_in(given.name)
        if claimed is not None and not _FIRST <= claimed <= now + timedelta(days=1):
            return WRONG_USAGE
        if given.lacks_paths and not given.dumped:
            return FAILED
        if not given.dumped:
            return self._ingest_nothing(given, claimed, now)
        name, replaces = given.name, False
        if given.is_named:
            run = self.runs.get(name, Run(0, now, ""))
            is_whole = given.replaces and not given.host
            there = run.dumps if is_whole else run.dumps_of(given.host)
            compared = _compare(there, given.dumped)
            replaces = given.replaces and (compared.is_other or compared.lacks_some)
            if compared.is_other and not replaces:
                return WRONG_USAGE
            if _is_mixed(run, given) and not (replaces and is_whole):
                return WRONG_USAGE
        else:
            name = self._night_of(given, now)
        self._write(name, given, claimed, now, replaces=replaces)
        return DONE

    def _night_of(self, given: Given, now: datetime) -> str:
        """The run that the dumps of a path without --run are: one that is there, or a new one."""
        nights = self._nights(given.name)
        for night in nights:
            last, this = self.runs[nights[0]], self.runs[night]
            times = [run.compiled_at for run in (last, this) if run.compiled_at]
            if this is not last and times and given.newest and given.newest > max(times):
                # A change that was taken back is a night of its own.
                continue
            if not _compare(this.dumps, given.dumped).is_other:
                return night
        return given.name if not nights else self._later(given.name, now)

    def _nights(self, name: str) -> list[str]:
        """The runs of a path, the last to enter first."""
        found = [run for run in self.runs if run == name or _LATER.fullmatch(run, len(name))]
        found = [run for run in found if run.startswith(name)]
        return sorted(found, key=lambda run: -self.runs[run].seq)

    def _later(self, name: str, now: datetime) -> str:
        first = later = f"{name}@{now:%Y-%m-%dT%H:%M:%S}"
        number = 1
        while later in self.runs:
            number += 1
            later = f"{first}_{number}"
        return later

    def _write(
        self, name: str, given: Given, claimed: datetime | None, now: datetime, *, replaces: bool
    ) -> None:
        before = copy.deepcopy(self.runs.get(name))
        run = self.runs.get(name)
        if replaces:
            assert run is not None
            gone = run.dumps_of(given.host) if given.host else dict(run.dumps)
            run.dumps = {key: dump for key, dump in run.dumps.items() if key not in gone}
            run.parts = {host: part for host, part in run.parts.items() if host != given.host}
            if not given.host:
                run.parts = {}
            self.accepted = [
                each for each in self.accepted if each.run != name or each.name not in gone
            ]
        if run is None or (replaces and not given.host):
            seq = max((other.seq for other in self.runs.values()), default=0) + 1
            run = self.runs[name] = Run(
                run.seq if run else seq,
                now,
                given.source,
                claimed,
                given.newest,
                run.labels if run else {},
            )
        else:
            if given.at is not None:
                run.claimed_at = given.at
            if given.dumped.keys() - run.dumps.keys() and not given.host:
                run.source = given.source
        hosts = {key: dump.host for key, dump in run.dumps.items()}
        for key, program in given.dumped.items():
            run.dumps[key] = Stored(program, hosts.get(key, given.host))
        run.labels = {k: v for k, v in {**run.labels, **given.labels}.items() if v}
        run.parts.setdefault(given.host, Part(given.source, now))
        self.exists = True
        if run != before or replaces:
            self._enter(now, "replace" if replaces else "ingest", name, given.host)
        self._commit()

    def _ingest_nothing(self, given: Given, claimed: datetime | None, now: datetime) -> int:
        """A night in which nothing was compiled is a run too."""
        name = given.name
        nights = [] if given.is_named else self._nights(name)
        if nights:
            name = nights[0]
            if self.runs[name].dumps:
                name = self._later(given.name, now)
        if name in self.runs and given.is_named and _is_mixed(self.runs[name], given):
            return WRONG_USAGE
        if name in self.runs and self.runs[name].dumps_of(given.host):
            return DONE
        self._write(name, given, claimed, now, replaces=False)
        return DONE

    # -- the other commands that change --------------------------------------------------------

    def prune(self, runs: Iterable[str], now: datetime) -> int:
        """`memhouse prune RUN…`."""
        names = list(dict.fromkeys(runs))
        if not self.exists:
            return FAILED
        if not all(name in self.runs for name in names):
            return WRONG_USAGE
        self._drop(names, now)
        return DONE

    def prune_keep(self, age: str, now: datetime) -> int:
        """`memhouse prune --keep AGE`."""
        if not self.exists:
            return FAILED
        self._drop(self.older_than(age, now), now)
        return DONE

    def older_than(self, age: str, now: datetime) -> list[str]:
        """What `--keep` does not keep: what claims to be older, and entered before that too."""
        first = now - timedelta(days=int(age[:-1]) * _AGE[age[-1]])
        return [
            name
            for name in self.in_order()
            if max(
                self.runs[name].at,
                self.runs[name].entered_at,
                *(part.entered_at for part in self.runs[name].parts.values()),
            )
            < first
        ]

    def _drop(self, names: list[str], now: datetime) -> None:
        for name in names:
            del self.runs[name]
            self._enter(now, "prune", name)
        self.accepted = [each for each in self.accepted if each.run in self.runs]
        self._commit()

    def label(self, runs: Iterable[str], labels: Mapping[str, str], now: datetime) -> int:
        """`memhouse label RUN… KEY=VALUE…`."""
        names = list(dict.fromkeys(runs))
        if not self.exists:
            return FAILED
        if not all(name in self.runs for name in names):
            return WRONG_USAGE
        for name in names:
            run = self.runs[name]
            run.labels = {k: v for k, v in {**run.labels, **labels}.items() if v}
            self._enter(now, "label", name)
        self._commit()
        return DONE

    def rename(self, key: str, old: str, new: str, now: datetime) -> int:
        """`memhouse label --rename KEY=OLD:NEW`: those that have NEW already come after."""
        if not self.exists:
            return FAILED
        labels = [self.runs[run].labels.get(key, "") for run in self.in_order()]
        is_mixed = new in labels and old in labels[labels.index(new) :]
        if old == new or old not in labels or is_mixed:
            return WRONG_USAGE
        names = [run for run in self.in_order() if self.runs[run].labels.get(key, "") == old]
        return self.label(names, {key: new}, now)

    def sql_label(self, run: str, key: str, value: str, now: datetime) -> int:
        """`memhouse sql --write` with an INSERT of a label that the run does not have."""
        if not self.exists:
            return FAILED
        if run in self.runs and key in self.runs[run].labels:
            return WRONG_USAGE
        if run in self.runs:
            self.runs[run].labels[key] = value
        self._enter(now, "sql", None)
        self._commit()
        return DONE

    # -- check -----------------------------------------------------------------------------

    def judged(self) -> str | None:
        """The run that `check` judges unless one is named: what entered last."""
        entered = [
            run
            for action, run, _, _ in self.journal
            if action in ("ingest", "replace") and run in self.runs
        ]
        return entered[-1] if entered else None


def date_in(name: str) -> datetime | None:
    """The date in a run's name."""
    found = _DATE.search(name)
    if found is None:
        return None
    date = datetime.fromisoformat(found[0])
    return date.astimezone(UTC).replace(tzinfo=None) if date.tzinfo else date


def _is_mixed(run: Run, given: Given) -> bool:
    """Whether a run would be of hosts and of none."""
    return "" in run.parts if given.host else any(run.parts)


@dataclass(frozen=True)
class _Compared:
    """is_other: these dumps are not the run's; lacks_some: the run has more."""

    is_other: bool
    lacks_some: bool


def _compare(there: Mapping[Name, Stored], given: Dumped) -> _Compared:
    """Whether a file has other content, or whole dumps have gone and others come."""
    changed = any(given[name] != there[name].program for name in given.keys() & there.keys())
    lacks = bool(there.keys() - given.keys())
    return _Compared(changed or (lacks and bool(given.keys() - there.keys())), lacks)
