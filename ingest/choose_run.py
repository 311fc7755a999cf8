"""Which run the programs become: a stored run that holds them, or another one.

A path that was ingested may hold another night's dumps by now, and no night may be lost. So a
run stays as it is if the files no longer are the files it was made of:

- A file that was read whole has other content now.
- Whole files have vanished and other files have appeared: the folder was emptied and filled.

Otherwise the programs are still the same night, and the run goes on. Files may have appeared,
because the night was still being dumped or its ingest was cut short. A file that was not read
whole may be whole now. Files may have vanished, but what was read of them stays.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from ..schema import clock, ids
from ..schema.errors import UsageError
from ..schema.stores.base import Known, Store
from .outcomes import FAILED, MISSING, OK
from .sources.program import Fingerprinted, Identified, Program

_LATER = re.compile(r"@(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(_\d+)?")


@dataclass(frozen=True)
class Chosen:
    """The run to write to, what the store knows of it, and the programs to read.

    kept: dumps to leave as they are, because files of them cannot be
    read any more; replaces: whether the run's dumps give way to the programs; note: what to
    tell the user.
    """

    run_id: str
    known: Known
    programs: Sequence[Program]
    kept: frozenset[int] = frozenset()
    replaces: bool = False
    note: str | None = None

    @property
    def has_new_dumps(self) -> bool:
        """Whether the run lacks some of the programs."""
        found = (ids.dump_id(self.run_id, *program.key.in_run) for program in self.programs)
        return any(dump not in self.known.dumps for dump in found)


def choose_run(
    store: Store,
    programs: Sequence[Program],
    name: str,
    source: str,
    *,
    is_named: bool,
    replaces: bool,
    adds: bool = False,
    host: str | None = None,
) -> Chosen:
    """The run that the programs become.

    With `adds` they join what the run `name` holds: their names tell them apart. With a `host`
    they are its part of the run, and only what it holds of this host is compared. Without one
    they are a part as well, but what they replace is the whole run.

    If the run `name` holds other dumps, the programs become the run NAME@TIME of now. But a run
    that the user named must be that run: raises UsageError, unless `replaces`.
    """
    if adds:
        return Chosen(name, store.known(name), programs)
    comparing = _Comparing(programs)
    if is_named:
        whole = store.known(name)
        known = whole if replaces and host is None else whole.of_host(host or "")
        found = comparing.with_run(known, name)
        if replaces and (found.has_changed or found.lacks_files):
            if host is not None:
                refuse_mixed_parts(name, whole, host)
            return Chosen(name, known, comparing.programs(known), replaces=True)
        refuse_mixed_parts(name, whole, host)
        if not found.has_changed:
            return Chosen(name, known, comparing.programs(known), kept=found.incomplete)
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
            return Chosen(run_id, known, comparing.programs(known), kept=found.incomplete)
    if not nights:
        return Chosen(name, store.known(name), programs)
    run_id = later_name(name, clock.now(), {night["run_id"] for night in nights})
    known = store.known(run_id)
    last = nights[0]
    if last["source"] == source:
        note = f"{source} has changed since it was ingested as {last['run_id']}"
    else:
        note = f"run {last['run_id']} holds other dumps, of {last['source']}"
    note = f"{note}: both are kept, this is the run {run_id}, because no run was named"
    return Chosen(run_id, known, comparing.programs(known), note=note)


def refuse_mixed_parts(name: str, known: Known, host: str | None) -> None:
    """Raise UsageError if the run would be of hosts and of none.

    A forgotten `--host` would make what it ingests a part that no host names.
    """
    hosts = sorted(known.hosts - {""})
    if host is None and hosts:
        raise UsageError(
            f"run {name!r} has parts of hosts ({', '.join(hosts)}): name this one with --host, or "
            "name another run",
            "run",
        )
    if host is not None and "" in known.hosts:
        raise UsageError(
            f"run {name!r} holds dumps that were ingested without --host: ingest them so again, "
            "or name another run",
            "run",
        )


def nights_of(store: Store, name: str) -> list[Mapping[str, Any]]:
    """The rows of the run `name` and of the later nights of it, the last to enter first."""
    return [night for night in store.nights(name) if _is_night(name, night["run_id"])]


def _is_night(name: str, run_id: str) -> bool:
    """Whether the run is `name` or a later night of it, and was not named so by a user."""
    return run_id == name or _LATER.fullmatch(run_id.removeprefix(name)) is not None


def file_time(modified: float) -> datetime:
    """The time of a file, given in seconds since 1970."""
    return datetime.fromtimestamp(modified, UTC)


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
            stored = {f["kind"]: f for f in known.files.get(dump, ()) if f["status"] != MISSING}
            files = {file.kind: file for file in self._fingerprint(there[dump]).files}
            found.has_more_files |= not files.keys() <= stored.keys()
            for kind, row in stored.items():
                if row["status"] != OK:
                    continue
                if kind in self._fingerprint(there[dump]).unread:
                    continue
                file = files.get(kind)
                found.lacks_files |= file is None
                if file is None or (file.sha256 is None and row["sha256"] is not None):
                    incomplete.add(dump)
                elif file.sha256 != row["sha256"]:
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

    def programs(self, known: Known) -> list[Program]:
        """The programs; one whose module is stored whole is not read again."""
        return [
            Fingerprinted(program, self.taken[place])
            if place in self.taken and self.taken[place].module_id in known.complete
            else program
            for place, program in enumerate(self.given)
        ]

    def _fingerprint(self, place: int) -> Identified:
        if place not in self.taken:
            # The content of all programs may not fit into memory.
            self.taken[place] = replace(self.given[place].fingerprint(), content=None)
        return self.taken[place]
