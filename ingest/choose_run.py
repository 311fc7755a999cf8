"""Which run the programs become: a stored run that holds them, or another one."""

import re
from collections.abc import Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from ..schema import clock, ids
from ..schema.errors import UsageError
from ..schema.store import Known, Store
from .outcomes import FAILED, MISSING, OK
from .sources.program import Identified, Program
from .sources.xprof_session import session_time

# The dates that people put into the names of runs, folders and archives.

# With hyphens as `record` names its runs, because a colon is no good part of a file's name.
_ISO_DATE = re.compile(
    r"(?<!\d)(\d{4}-\d{2}-\d{2})"
    r"(?:[T_ ](\d{2}:?\d{2}(?::?\d{2})?|(?<=T)\d{2}-\d{2}-\d{2})"
    r"(Z|[+-][01]\d:?(?:00|15|30|45))?)?(?!\d)"
)
# Before XLA dumped memory, and later than the next day everywhere, nobody compiled a run.
_FIRST = datetime(2015, 1, 1)
_AHEAD = timedelta(days=1)


def date_in(name: str) -> datetime | None:
    """The date in a name: ISO, with or without time and offset, or that of a session; in UTC."""
    if at := session_time(name):
        return at
    for match in _ISO_DATE.finditer(name):
        # The digits after a date may not be a time: 2026-10-01_8192.
        time = (match[2] or "").replace("-", ":")
        for text in (f"{match[1]}T{time}{match[3] or ''}", match[1]):
            with suppress(ValueError):
                return clock.in_utc(datetime.fromisoformat(text))
    return None


def claim(at: datetime | None, run_id: str) -> datetime | None:
    """The date that a run claims: `at`, else the date in its name; None without either.

    An `at` with no time zone is UTC. Raises UsageError for a date at which nobody can have
    compiled the run.
    """
    at = None if at is None else clock.in_utc(at)
    claimed = at or date_in(run_id)
    if claimed is None or _FIRST <= claimed <= clock.now() + _AHEAD:
        return claimed
    said, instead = (
        (f"the time {at.isoformat()}", "give the time at which the run was compiled")
        if at
        else (f"the date in the run's name {run_id!r}", "give the right one with --at")
    )
    when = "before 2015" if claimed < _FIRST else "in the future"
    raise UsageError(f"{said} is {when}: {instead}", "at" if at else "run")


# Numbers the dumps of a run that have equal workload, module name and platform, from 1.

_Named = tuple[str, str, str | None]


class Occurrences:
    """Gives each dump the lowest number that no dump of its name has.

    `stored`: the rows of the run's dumps; those that are not in `given` keep their numbers.
    """

    def __init__(self, stored: Mapping[int, Mapping[str, Any]], given: Set[int]) -> None:
        self._taken = {
            ((row["workload"], row["module_name"], row["platform"]), row["occurrence"])
            for dump, row in stored.items()
            if dump not in given
        }
        self._last: dict[_Named, int] = {}

    def number(self, workload: str, module_name: str, platform: str | None) -> int:
        """The number of the next dump of this name."""
        named = (workload, module_name, platform)
        number = self._last.get(named, 0) + 1
        while (named, number) in self._taken:
            number += 1
        self._last[named] = number
        return number


# Which run the programs become: a stored run that holds them, or another one.
#
# A path that was ingested may hold another night's dumps by now, and no night may be lost. So a
# run stays as it is if the files no longer are the files it was made of:
#
# - A file that was read whole has other content now.
# - Whole files have vanished and other files have appeared: the folder was emptied and filled.
#
# Otherwise the programs are still the same night, and the run goes on. Files may have appeared,
# because the night was still being dumped or its ingest was cut short. A file that was not read
# whole may be whole now. Files may have vanished, but what was read of them stays.

_LATER = re.compile(r"@(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(_\d+)?")


@dataclass(frozen=True)
class Run:
    """The run that the programs should become.

    claimed_at: what --at says; without it, a new run claims the date in its name, and a stored
    one stands where it stood. labels: an empty one is removed.
    is_named: the user named the run, so its programs become no other run; replaces: a run of this
    name that holds other dumps is replaced; adds: the programs join those that the run holds;
    host: they are one host's part of the run; device_memory_bytes: of the device compiled for, if
    the user says so; orders: other orders of the instructions are tried, see `add_orders`.
    """

    run_id: str
    source: str
    tool_version: str
    claimed_at: datetime | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    is_named: bool = False
    replaces: bool = False
    adds: bool = False
    host: str | None = None
    device_memory_bytes: int | None = None
    orders: bool = False


@dataclass(frozen=True)
class Chosen:
    """The run to write to, what the store knows of it, and the programs to read.

    kept: dumps to leave as they are, because files of them cannot be read any more; replaces:
    whether the run's dumps give way to the programs; note: what to tell the user; fingerprints:
    those of the programs that were taken to compare, by index, without content.
    """

    run_id: str
    known: Known
    programs: Sequence[Program]
    kept: frozenset[int] = frozenset()
    replaces: bool = False
    note: str | None = None
    fingerprints: Mapping[int, Identified] = field(default_factory=dict)

    @property
    def has_new_dumps(self) -> bool:
        """Whether the run lacks some of the programs."""
        found = (ids.dump_id(self.run_id, *program.key.in_run) for program in self.programs)
        return any(dump not in self.known.dumps for dump in found)


def choose_run(store: Store, programs: Sequence[Program], run: Run) -> Chosen:
    """The run that the programs become.

    If the run of this name holds other dumps, the programs become the run NAME@TIME of now. But a
    run that the user named must be that run: raises UsageError, unless it replaces the dumps. Of a
    host's part of a run only what the run holds of this host is compared.
    """
    name, host = run.run_id, run.host
    if run.adds:
        return Chosen(name, store.known(name), programs)
    comparing = _Comparing(programs)
    taken = comparing.taken
    if run.is_named:
        known = store.known(name, *(() if run.replaces and host is None else (host,)))
        found = comparing.with_run(known, name)
        if run.replaces and (found.has_changed or found.lacks_files):
            if host is not None:
                refuse_mixed_parts(name, known, host)
            return Chosen(name, known, programs, replaces=True, fingerprints=taken)
        refuse_mixed_parts(name, known, host)
        if not found.has_changed:
            return Chosen(name, known, programs, found.incomplete, fingerprints=taken)
        assert known.run is not None
        raise UsageError(
            f"run {name!r} holds other dumps{f' of host {host}' if host else ''}, of "
            f"{known.run['source']}: name another run, or drop these dumps with --replace",
            "run",
        )
    nights = nights_of(store, name)
    newest = file_time(max(program.modified for program in programs))
    for night in nights:
        # Files newer than the last night, but with the content of an earlier night, are a night
        # of their own: a change that was taken back. Without times they are the earlier night.
        written = [times for each in (nights[0], night) if (times := each["compiled_at"])]
        if night is not nights[0] and written and newest > max(written):
            continue
        run_id = night["run_id"]
        known = store.known(run_id)
        found = comparing.with_run(known, run_id)
        if not found.has_changed:
            return Chosen(run_id, known, programs, found.incomplete, fingerprints=taken)
    if not nights:
        return Chosen(name, store.known(name), programs)
    run_id = later_name(name, clock.now(), {night["run_id"] for night in nights})
    known = store.known(run_id)
    last = nights[0]
    if last["source"] == run.source:
        note = f"{run.source} has changed since it was ingested as {last['run_id']}"
    else:
        note = f"run {last['run_id']} holds other dumps, of {last['source']}"
    note = f"{note}: both are kept, this is the run {run_id}, because no run was named"
    return Chosen(run_id, known, programs, note=note, fingerprints=taken)


def refuse_mixed_parts(name: str, known: Known, host: str | None) -> None:
    """Raise UsageError if the run would be of hosts and of none.

    A forgotten `--host` would make what it ingests a part that no host names.
    """
    hosts = sorted(host for host in known.hosts if host is not None)
    if host is None and hosts:
        raise UsageError(
            f"run {name!r} has parts of hosts ({', '.join(hosts)}): name this one with --host, or "
            "name another run",
            "run",
        )
    if host is not None and None in known.hosts:
        raise UsageError(
            f"run {name!r} holds dumps that were ingested without --host: ingest them so again, "
            "or name another run",
            "run",
        )


def nights_of(store: Store, name: str) -> list[Mapping[str, Any]]:
    """The rows of the run `name` and of the later nights of it, the last to enter first."""
    return [
        night
        for night in store.nights(name)
        if night["run_id"] == name or _LATER.fullmatch(night["run_id"].removeprefix(name))
    ]


def file_time(modified: float) -> datetime:
    """The time of a file, given in seconds since 1970."""
    return clock.in_utc(datetime.fromtimestamp(modified, UTC))


def later_name(name: str, now: datetime, taken: set[str]) -> str:
    """The name of a later night; several may enter within a second."""
    first = f"{name}@{now:%Y-%m-%dT%H:%M:%S}"
    number = 1
    while (later := first if number == 1 else f"{first}_{number}") in taken:
        number += 1
    return later


@dataclass
class _Compared:
    """How the programs differ from a stored run.

    has_changed: they are not the same night; lacks_files: whole files of the run are not
    there; has_more_files: the run lacks some files; incomplete: the stored dumps of which
    whole files cannot be read any more.
    """

    has_changed: bool = False
    lacks_files: bool = False
    has_more_files: bool = False
    incomplete: frozenset[int] = frozenset()


@dataclass
class _Comparing:
    """Compares programs with stored runs; takes each fingerprint once, when it is needed."""

    given: Sequence[Program]
    taken: dict[int, Identified] = field(default_factory=dict)

    def with_run(self, known: Known, run_id: str) -> _Compared:
        """Compare with one run; stops at the first change."""
        there = {ids.dump_id(run_id, *p.key.in_run): place for place, p in enumerate(self.given)}
        whole_dumps = {dump for dump, row in known.dumps.items() if row["status"] != FAILED}
        found = _Compared(
            lacks_files=not whole_dumps <= there.keys(),
            has_more_files=self._has_others(there, known),
        )
        incomplete = set()
        for dump in there.keys() & known.dumps.keys():
            if found.lacks_files and found.has_more_files:
                break
            rows = known.files.get(known.dumps[dump]["files_id"], ())
            stored = {row.kind: row for row in rows if row.status != MISSING}
            files = {file.kind: file for file in self._fingerprint(there[dump]).files}
            found.has_more_files |= not files.keys() <= stored.keys()
            for kind, row in stored.items():
                if row.status != OK:
                    continue
                if kind in self._fingerprint(there[dump]).unread:
                    continue
                file = files.get(kind)
                found.lacks_files |= file is None
                if file is None or (file.sha256 is None and row.sha256 is not None):
                    incomplete.add(dump)
                elif file.sha256 != row.sha256:
                    return _Compared(has_changed=True)
        found.has_changed = found.lacks_files and found.has_more_files
        found.incomplete = frozenset(incomplete)
        return found

    def _has_others(self, there: Mapping[int, int], known: Known) -> bool:
        """Whether there are programs that the run lacks, other than those that it leaves out."""
        return any(
            not known.dumps or self._fingerprint(place).left_out is None
            for dump, place in there.items()
            if dump not in known.dumps
        )

    def _fingerprint(self, place: int) -> Identified:
        if place not in self.taken:
            # The content of all programs may not fit into memory.
            self.taken[place] = replace(self.given[place].fingerprint(), content=None)
        return self.taken[place]
