"""The rows of one module, by relation: the parts of its dump joined by instruction names."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

from ..xla.agreement import (
    contradictions,
    difference,
    disagreements,
    match_live_ranges,
)
from ..xla.allocation_values import values_of_allocations
from ..xla.attribution import Attribution
from ..xla.compiler_passes import MAX_BUFFERS, MIN_SHARE, Event, PassRow, trace_back
from ..xla.complete import match_values
from ..xla.donations import Donation, DonationCopy, Donations
from ..xla.figures import MemoryFigures, memory_figures
from ..xla.idle_buffers import (
    BufferUse,
    alias_set_ids,
    alias_set_uses,
    find_temp_values,
    residual_uses,
)
from ..xla.parts import Allocation, AssignedValue, LiveRanges, Origin, Parts, UsedValues
from ..xla.pass_programs import is_forwarding
from ..xla.passes import ARGUMENT
from ..xla.peak_parts import (
    MAIN_MEMORY,
    BufferLabels,
    PeakBuffer,
    buffers_at_peak,
    label_buffer,
    peak_parts,
    source_line_name,
)
from ..xla.program import NONE, Program
from ..xla.program_id import program_id, skeleton_id
from ..xla.scopes import Scope
from ..xla.spaces import space_of
from ..xla.traits import Trait, find_traits
from ..xla.work import measure_work
from .derive import Derivation
from .program_rows import definition_columns, entries_at, numbers_at, program_relations
from .rows import Columns, Module, Rows, columns_of


def number_instructions(parts: Parts) -> dict[str, int]:
    """The instruction_id of each name: rows of the program, then the names of other parts."""
    ids = dict(parts.program.row_of) if parts.program is not None else {}
    names: list[Iterable[str]] = []
    if parts.live_ranges is not None:
        names.append(parts.live_ranges.schedule)
    if parts.used_values is not None:
        used = parts.used_values
        names += [(row.instruction for row in rows) for rows in (used.values, used.positions)]
        names.append(row.instruction for row in used.uses)
    if parts.assignment is not None:
        names.append(row.instruction for row in parts.assignment.values)
    if parts.live_ranges is not None:
        names.append(row.instruction for row in parts.live_ranges.ranges)
    for name in chain.from_iterable(names):
        ids.setdefault(name, len(ids))
    return ids


def merge_values(parts: Parts) -> list[AssignedValue]:
    """All values by value_id; those that only Used values lists have no sizes."""
    assigned = parts.assignment.values if parts.assignment is not None else []
    used = parts.used_values.values if parts.used_values is not None else []
    assigned_ids = {value.value_id for value in assigned}
    others = [value for value in used if value.value_id not in assigned_ids]
    return sorted([*assigned, *others], key=lambda value: value.value_id)


def build_module(
    derivation: Derivation, platform: str | None = None, user_code: Sequence[str] = ()
) -> Module:
    """The rows of a module.

    If a part is missing or contradicts another part, the figures that depend on it are null.

    Args:
        platform: determines what a memory space is called.
        user_code: patterns of files that are the user's code, see `frames.is_library`.
    """
    return _ModuleBuilder(derivation, platform, tuple(user_code)).build()


class _ModuleBuilder:
    """Builds the rows of one module, relation by relation.

    Attributes:
        ids: instruction_id by name, see `number_instructions`.
        values: all values by value_id, ascending.
        indices: by value, its index in the dataflow; NONE if the HLO text lacks it.
        alias_sets: by value, the smallest value_id of its alias set, or NONE.
        ranges: by value_id, ascending, the first and last time at which it is live.
        is_complete: whether no part contradicts another and all allocations are known.
        definitions: the instructions, of the text or of Used values.
    """

    def __init__(
        self, derivation: Derivation, platform: str | None, user_code: tuple[str, ...]
    ) -> None:
        self.derivation, self.platform, self.user_code = derivation, platform, user_code
        self.parts = parts = derivation.parts
        self.attribution = derivation.attribution
        self.ids = number_instructions(parts)
        self.values = merge_values(parts)
        dumped = parts.live_ranges.ranges if parts.live_ranges is not None else ()
        self.live_ranges, unmatched = match_live_ranges(dumped, self.values)
        self.ranges = {
            value_id: (row.start_time, row.end_time) for value_id, row in self.live_ranges.items()
        }
        self.contradictions = contradictions(parts, self.live_ranges, unmatched)
        self.is_complete = not self.contradictions and (
            parts.assignment is None or parts.assignment.is_complete
        )
        self.indices = self.alias_sets = [NONE] * len(self.values)
        if self.attribution is not None:
            analysis = self.attribution.analysis
            self.indices = match_values(analysis, self.values)
            self.alias_sets = alias_set_ids(analysis, self.values, self.indices)
        self.definitions = parts.program
        if self.definitions is None and parts.used_values is not None:
            self.definitions = parts.used_values.definitions
        self.rows: Rows = {}

    def build(self) -> Module:
        """The module with all its rows."""
        parts = self.parts
        header = self._header()
        self._add_instructions()
        if parts.program is not None:
            self._add_program(parts.program, header)
        if parts.used_values is not None:
            self._add_positions_and_uses(parts.used_values)
        if parts.live_ranges is not None:
            self._add_times(parts.live_ranges)
        memory = self._add_memory()
        residual_ids = self._add_buffers(memory)
        self._add_values(residual_ids)
        if self.attribution is not None:
            self._add_donations(self.attribution.analysis.program)
        peak_buffers = self._add_peak(memory)
        if self.attribution is not None:
            self._add_traits(self.attribution, memory)
        module = Module(header, self.rows, self.contradictions)
        if parts.program is not None:
            module.disagreements = self._disagreements(parts.program, header)
        if parts.pass_texts:
            module.n_pass_texts = len(parts.pass_texts)
            module.unread_passes = self._add_passes(peak_buffers)
        return module

    def _add(self, relation: str, columns: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> None:
        """Add a relation, unless it has no rows."""
        if rows:
            self.rows[relation] = columns_of(columns, rows)

    def _header(self) -> dict[str, object]:
        """The columns of the module's row in `modules`."""
        parts = self.parts
        header: dict[str, object] = {"origin": self._origin()}
        if parts.program is not None:
            header |= parts.program.header._asdict()
            header["skeleton_id"] = skeleton_id(parts.program.entry_shapes)
        if parts.totals is not None:
            header["reported_total_bytes"] = sum(parts.totals.values())
        if parts.used_values is not None:
            header["reported_total_bytes"] = parts.used_values.total_bytes
        if parts.live_ranges is not None:
            header["schedule_length"] = len(parts.live_ranges.schedule)
            header["reported_peak_time"] = parts.live_ranges.peak_time
            if parts.live_ranges.peak_time is not None:
                peak = parts.live_ranges.peak
                header["reported_peak_bytes"] = sum(value.size_bytes for value in peak)
        assumed = self.derivation.notes.assumed
        if self.attribution is not None and assumed:
            header["assumed"] = opcode_counts(assumed)
            if header["origin"] == "derived":
                header["origin"] = "estimated"
        if header["origin"] is not None:
            is_unscheduled = parts.assignment is not None and bool(parts.assignment.peak_high)
            header["grade"] = 2 if is_unscheduled else int(header["origin"] == "estimated")
        if self.attribution is not None and self.values:
            header["liveness_difference"] = self._liveness_difference(self.attribution)
        if self.derivation.program is not None and not self.contradictions:
            live_ranges = self.live_ranges if parts.live_ranges is not None else None
            header["program_id"] = program_id(
                self.derivation.program, parts.assignment, live_ranges
            )
        return header

    def _origin(self) -> Origin | None:
        """Where the module's figures come from; None if it has none."""
        parts = self.parts
        if parts.totals is not None:
            return "estimated"
        if parts.assignment is None or parts.live_ranges is None:
            return None
        return "estimated" if parts.assignment.origin == "estimated" else parts.live_ranges.origin

    def _liveness_difference(self, attribution: Attribution) -> str | None:
        """Where dumped live ranges, positions or uses differ from the HLO text's, or None."""
        parts, analysis = self.parts, attribution.analysis
        dumped = (parts.assignment, parts.live_ranges, parts.used_values)
        if (
            not self.derivation.is_scheduled
            or analysis.assumed
            or analysis.program.unread
            or any(part is None or part.origin != "dumped" for part in dumped)
        ):
            return None
        return difference(parts, analysis, self.values, self.indices)

    def _add_instructions(self) -> None:
        """The rows of `instructions`: one for each name in any part of the dump."""
        program = self.definitions
        columns: Columns = {
            "instruction_id": list(range(len(self.ids))),
            "instruction": list(self.ids),
        }
        self.rows["instructions"] = columns
        if self.parts.live_ranges is not None:
            times: dict[str, int] = {}
            for time, name in enumerate(self.parts.live_ranges.schedule):
                times.setdefault(name, time)
            columns["schedule_time"] = [times.get(name) for name in self.ids]
        if program is None:
            return
        columns |= definition_columns(program, list(self.ids), self.user_code)
        if self.parts.program is not None and self.attribution is not None:
            rows = [program.row_of.get(name, NONE) for name in self.ids]
            columns["scope_id"] = numbers_at(self.attribution.scopes.scope_id, rows)
            columns["pass"] = entries_at(self.attribution.passes.by_row, rows)

    def _add_program(self, program: Program, header: dict[str, object]) -> None:
        """The relations and columns that need HLO text; total FLOPs go to the header."""
        self.rows |= program_relations(program)
        if self.attribution is not None:
            scopes = [(number, *scope) for number, scope in enumerate(self.attribution.scopes.rows)]
            self._add("scopes", ("scope_id", *Scope._fields), scopes)
        if self.derivation.program is not None:
            work = measure_work(program)
            header["flops"], header["unknown_loops"] = work.total_flops, work.unknown_loops
            ids = self.rows["instructions"]["instruction_id"]
            self.rows["instructions"]["flops"] = [work.flops.get(row) for row in ids]
            self.rows["computations"]["executions"] = work.executions
            if "calls" in self.rows:
                calls = self.rows["calls"]
                calls["trip_count"] = [
                    work.trip_counts.get(row) if attribute in ("body", "condition") else None
                    for row, attribute in zip(
                        calls["instruction_id"], calls["attribute"], strict=True
                    )
                ]

    def _disagreements(self, program: Program, header: dict[str, object]) -> list[str]:
        """Where the parts are at odds with the HLO text."""
        assignment = self.parts.assignment
        values = assignment.values if assignment is not None else []
        messages = disagreements(
            program, list(self.ids), sorted(values, key=lambda value: value.value_id)
        )
        difference_message = header.get("liveness_difference")
        return messages if difference_message is None else [str(difference_message), *messages]

    def _add_positions_and_uses(self, used: UsedValues) -> None:
        ids = self.ids
        positions = [
            (row.value_id, row.position_index, ids[row.instruction], row.shape_index)
            for row in used.positions
        ]
        self._add(
            "positions",
            ("value_id", "position_index", "instruction_id", "shape_index"),
            positions,
        )
        uses = [(row.value_id, row.use_index, ids[row.instruction], *row[3:]) for row in used.uses]
        self._add(
            "uses",
            ("value_id", "use_index", "instruction_id", "operand_number", "operand_shape_index"),
            uses,
        )

    def _add_times(self, live_ranges: LiveRanges) -> None:
        """The rows of `live_ranges` and of `reported_peak`."""
        ranges = [(value_id, start, end) for value_id, (start, end) in self.ranges.items()]
        self._add("live_ranges", ("value_id", "start_time", "end_time"), ranges)
        peak = [(rank, *value) for rank, value in enumerate(live_ranges.peak)]
        self._add("reported_peak", ("rank", "instruction", "shape_index", "size_bytes"), peak)

    def _add_memory(self) -> MemoryFigures | None:
        """The rows of `allocations`, `module_memory` and `occupancy`; None without figures."""
        parts, assignment = self.parts, self.parts.assignment
        if parts.totals is not None:
            totals = [(space, total, total) for space, total in parts.totals.items()]
            names = ("memory_space", "total_bytes", "reserved_bytes")
            self._add("module_memory", names, totals)
            self._name_spaces("module_memory")
            if assignment is not None:
                self._add("allocations", Allocation._fields, assignment.allocations)
                self._name_spaces("allocations")
            return None
        if assignment is None:
            return None
        arguments, results = self._arguments_and_results()
        shown = values_of_allocations(assignment.allocations, self.values, arguments, results)
        has_ranges = parts.live_ranges is not None and self.is_complete
        schedule = None
        if parts.live_ranges is not None:
            schedule = [self.ids[name] for name in parts.live_ranges.schedule]
        memory = memory_figures(
            assignment,
            [NONE if value_id is None else value_id for value_id in shown],
            self.ranges if has_ranges else None,
            schedule,
            is_complete=self.is_complete,
        )
        self._add("allocations", Allocation._fields, memory.allocations)
        if memory.allocations:
            columns = self.rows["allocations"]
            columns["value_id"] = shown
            if memory.temp_peaks is not None:
                columns |= columns_of(memory.temp_peaks[0]._fields, memory.temp_peaks)
        if memory.spaces:
            self._add("module_memory", memory.spaces[0]._fields, memory.spaces)
        if memory.steps:
            self._add("occupancy", memory.steps[0]._fields, memory.steps)
        for relation in ("allocations", "module_memory", "occupancy"):
            self._name_spaces(relation)
        return memory

    def _arguments_and_results(self) -> tuple[set[int], set[int]]:
        """The value_ids of the program's arguments, and of the values that are live-out.

        Without an attribution, values of parameters count as arguments, and values that are live
        until the end as live-out.
        """
        definitions, live_ranges = self.definitions, self.parts.live_ranges
        if self.attribution is not None:
            analysis = self.attribution.analysis
            by_index = {
                index: value.value_id
                for value, index in zip(self.values, self.indices, strict=True)
                if index != NONE
            }
            arguments = {
                value_id
                for index, value_id in by_index.items()
                if self.attribution.passes.by_row[analysis.flow.row[index]] == ARGUMENT
            }
            live_out = analysis.live_out_values()
            return arguments, {by_index[index] for index in live_out if index in by_index}
        parameters = set()
        if definitions is not None:
            pairs = zip(definitions.names, definitions.opcode, strict=True)
            parameters = {name for name, opcode in pairs if opcode == "parameter"}
        length = len(live_ranges.schedule) if live_ranges is not None else NONE
        return (
            {value.value_id for value in self.values if value.instruction in parameters},
            {value_id for value_id, (_, end) in self.ranges.items() if end == length},
        )

    def _name_spaces(self, relation: str) -> None:
        """Add the common name of each row's memory space, and XLA's to `module_memory`.

        A space that XLA names and that has no allocation gets a row without figures.
        """
        if relation in self.rows:
            columns = self.rows[relation]
            names = self.parts.space_names or {}
            if relation == "module_memory":
                for number in sorted(names.keys() - set(columns["memory_space"])):
                    for column, values in columns.items():
                        values.append(number if column == "memory_space" else None)
            numbers = columns["memory_space"]
            columns["space"] = [
                None if number is None else space_of(number, names.get(number), self.platform)
                for number in numbers
            ]
            if relation == "module_memory":
                columns["space_name"] = [names.get(number) for number in numbers]

    def _add_buffers(self, memory: MemoryFigures | None) -> set[int]:
        """The rows of `alias_sets` and `residuals`. Returns the ids of the residuals."""
        attribution, assignment = self.attribution, self.parts.assignment
        if (
            attribution is None
            or memory is None
            or assignment is None
            or attribution.accesses is None
            or not (self.values and self.is_complete)
            or self.parts.live_ranges is None
        ):
            return set()
        peak_times = {
            row.memory_space: row.peak_time for row in memory.spaces if row.peak_time is not None
        }
        temps = find_temp_values(
            self.values,
            self.indices,
            self.alias_sets,
            assignment.allocations,
            self.ranges,
            peak_times,
        )
        sets = alias_set_uses(attribution.analysis, attribution.accesses, temps)
        self._add(
            "alias_sets",
            ("alias_set", *BufferUse._fields),
            [(alias_set, *use) for alias_set, use in sets.items()],
        )
        residuals = []
        for number, use in residual_uses(attribution, attribution.accesses, temps).items():
            residual = attribution.residuals[number]
            reader = None if residual.reader == NONE else residual.reader
            owner = attribution.owners.row[residual.value]
            residuals.append((number, residual.layers, owner, reader, *use))
        names = ("residual_id", "layers", "made_instruction_id", "read_instruction_id")
        self._add("residuals", (*names, *BufferUse._fields), residuals)
        return {number for number, *_ in residuals}

    def _add_values(self, shown_residuals: set[int]) -> None:
        """The rows of `values`."""
        names = ("value_id", "instruction_id", *AssignedValue._fields[2:])
        rows = [(value[0], self.ids[value.instruction], *value[2:]) for value in self.values]
        self._add("values", names, rows)
        self._name_spaces("values")
        if self.attribution is not None and rows:
            owners, accesses = self.attribution.owners, self.attribution.accesses
            residual_ids = numbers_at(self.attribution.residual, self.indices)
            self.rows["values"] |= {
                "origin_instruction_id": numbers_at(owners.row, self.indices),
                "origin_rule": entries_at(owners.rule, self.indices),
                "pass": entries_at(self.attribution.value_pass, self.indices),
                "role": entries_at(self.attribution.role, self.indices),
                "alias_set": [None if number == NONE else number for number in self.alias_sets],
                "residual_id": [
                    number if number in shown_residuals else None for number in residual_ids
                ],
            }
            if accesses is not None:
                self.rows["values"]["last_use_time"] = numbers_at(accesses.last_use, self.indices)

    def _add_donations(self, program: Program) -> None:
        """The rows of `donations` and `donation_copies`, and the values of `entry_shapes`."""
        assignment, used = self.parts.assignment, self.parts.used_values
        donations = Donations(
            program,
            assignment.allocations if assignment is not None else [],
            self.values,
            used or UsedValues(None, [], [], []),
            {value_id: start for value_id, (start, _) in self.ranges.items()},
            self.rows["instructions"].get("schedule_time", [None] * len(program)),
        )
        self._add("donations", Donation._fields, donations.rows)
        self._add("donation_copies", DonationCopy._fields, donations.copies)
        if "entry_shapes" in self.rows:
            self.rows["entry_shapes"]["value_id"] = donations.value_ids

    def _add_peak(self, memory: MemoryFigures | None) -> list[PeakBuffer]:
        """The rows of `peak_parts`. Returns the buffers of the main memory at its peak."""
        assignment = self.parts.assignment
        if memory is None or assignment is None or not (self.ranges and self.is_complete):
            return []
        peak_time = next(
            (row.peak_time for row in memory.spaces if row.memory_space == MAIN_MEMORY), None
        )
        if peak_time is None:
            return []
        shown = self.rows["allocations"]["value_id"]
        buffers = buffers_at_peak(
            assignment,
            [NONE if value_id is None else value_id for value_id in shown],
            self.ranges,
            peak_time,
        )
        value_ids = {buffer.value_id for buffer in buffers}
        labels = {
            value.value_id: self._labels(index)
            for index, value in enumerate(self.values)
            if value.value_id in value_ids
        }
        parts = peak_parts(buffers, labels)
        if parts:
            names = tuple("pass" if name == "pass_name" else name for name in parts[0]._fields)
            self._add("peak_parts", names, parts)
        return buffers

    def _labels(self, index: int) -> BufferLabels:
        """The labels of the value at an index: by its origin, or its own instruction."""
        value = _row_at(self.rows["values"], index)
        origin = value.get("origin_instruction_id")
        row = value["instruction_id"] if origin is None else origin
        instruction = _row_at(self.rows["instructions"], row)
        scope_id = instruction.get("scope_id")
        scope = {} if scope_id is None else _row_at(self.rows.get("scopes", {}), scope_id)
        return label_buffer(
            role=value.get("role"),
            pass_name=value.get("pass"),
            shape=value.get("shape"),
            opcode=instruction.get("opcode"),
            op_name=instruction.get("op_name"),
            scope=scope.get("scope"),
            operation=scope.get("operation"),
            source_file=instruction.get("source_file"),
            source_line=instruction.get("source_line"),
        )

    def _add_traits(self, attribution: Attribution, memory: MemoryFigures | None) -> None:
        """The rows of `traits`."""
        instructions = self.rows["instructions"]
        times = instructions.get("schedule_time")
        peak_id = None
        for row in memory.spaces if memory is not None else ():
            if row.memory_space == MAIN_MEMORY:
                peak_id = row.peak_instruction_id
        traits = find_traits(
            attribution,
            self.parts.assignment.values if self.parts.assignment is not None else [],
            None if times is None else [NONE if time is None else time for time in times],
            [
                source_line_name(file, line)
                for file, line in zip(
                    instructions["source_file"], instructions["source_line"], strict=True
                )
            ],
            peak_id,
        )
        self._add("traits", Trait._fields, traits)

    def _add_passes(self, peak_buffers: Sequence[PeakBuffer]) -> list[str]:
        """The rows of `compiler_passes` and `compiler_pass_events`.

        Returns the texts that cannot be read.
        """
        followed = self._followed_values(peak_buffers)
        rows, events, unread = trace_back(self.parts.pass_texts, [name for _, name in followed])
        self._add("compiler_passes", PassRow._fields, rows)
        pass_events = [
            (value_id, number, step, *event)
            for (value_id, _), buffer_events in zip(followed, events, strict=True)
            for number, (step, event) in enumerate(buffer_events)
        ]
        names = ("value_id", "event_number", "step", *Event._fields)
        self._add("compiler_pass_events", names, pass_events)
        return [f"{text.step} ({text.compiler_pass or 'the last'})" for text in unread]

    def _followed_values(self, peak_buffers: Sequence[PeakBuffer]) -> list[tuple[int, str]]:
        """The large values of the peak but for arguments: value_id and defining instruction."""
        instructions = self.rows["instructions"]
        if "opcode" not in instructions:
            return []
        smallest = MIN_SHARE * sum(buffer.counted_bytes for buffer in peak_buffers)
        values = self.rows.get("values", {})
        index_of = {value_id: index for index, value_id in enumerate(values.get("value_id", ()))}
        followed = []
        for buffer in sorted(peak_buffers, key=lambda buffer: -buffer.counted_bytes):
            index = index_of.get(buffer.value_id)
            if index is None or buffer.counted_bytes < smallest:
                continue
            row = values["instruction_id"][index]
            opcode = instructions["opcode"][row]
            if opcode is not None and is_forwarding(opcode) and "origin_instruction_id" in values:
                # A loop's carry and the like contain the result of another instruction.
                origin = values["origin_instruction_id"][index]
                row = row if origin is None else origin
                opcode = instructions["opcode"][row]
            if opcode not in (None, "parameter"):
                followed.append((buffer.value_id, instructions["instruction"][row]))
        return followed[:MAX_BUFFERS]


def _row_at(columns: Columns, row: int) -> dict[str, Any]:
    return {name: column[row] for name, column in columns.items()}


def opcode_counts(counts: Mapping[str, int]) -> str:
    """Opcodes, each with its number of instructions: `all-to-all-start (12)`."""
    return ", ".join(f"{opcode} ({count})" for opcode, count in counts.items())
