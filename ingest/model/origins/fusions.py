"""What the elements of fusions hold: the instruction inside that computes each."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ....schema.address_space.runs import followed, joined
from ..numbered_program import NONE, Ints, Mask
from .named import Named
from .values import Values

# These keep the elements, whatever their order and type.
KEEPS_ELEMENTS = ("convert", "bitcast", "copy", "reshape", "transpose")
# These keep some of the elements, or repeat them.
TAKES_ELEMENTS = (*KEEPS_ELEMENTS, "slice", "pad", "broadcast", "dynamic-slice")


@dataclass(frozen=True)
class Fusions:
    """Where the instructions inside of fusions lead.

    Each answer is an instruction for each instruction: the one that is reached when only
    certain instructions are passed through, from the parameters of a nested fusion on to its
    caller's operands. A parameter of an outermost fusion ends each way.
    """

    named: Named

    @cached_property
    def _steps(self) -> Ints:
        """The steps without a choice: parameters, fusions and elements within fusions."""
        named, program = self.named, self.named.program
        step = np.arange(len(program))
        nested = np.flatnonzero(named.is_fused & (named.outer_operand != NONE))
        nested = nested[named.is_fused[named.outer_operand[nested]]]
        step[nested] = named.outer_operand[nested]
        elements = program.rows("get-tuple-element")
        elements = elements[named.is_fused[elements]]
        operand = program.operand(elements, 0)
        tuples = np.where(
            program.opcode.is_one_of("fusion")[operand], named.inner_root[operand], operand
        )
        is_tuple = program.opcode.is_one_of("tuple")[tuples]
        elements, tuples = elements[is_tuple], tuples[is_tuple]
        step[elements] = program.operand(tuples, program.tuple_index[elements])
        return step

    def _through(self, opcodes: tuple[str, ...], allowed: Mask) -> Ints:
        """What is reached from each instruction through these opcodes, where allowed."""
        return followed(self._step_through(opcodes, allowed))

    def _step_through(
        self, opcodes: tuple[str, ...], allowed: Mask, *, fusions: bool = False
    ) -> Ints:
        """One step: as `_steps`, and through these opcodes and fusions, where allowed.

        `fusions` allows all fusions.
        """
        named, program = self.named, self.named.program
        step = self._steps.copy()
        rows = np.flatnonzero(named.is_fused & allowed & program.opcode.is_one_of(*opcodes))
        step[rows] = program.operand(rows, 0)
        nested = program.rows("fusion")
        nested = nested[named.is_fused[nested]]
        nested = nested if fusions else nested[allowed[nested]]
        nested = nested[~program.opcode.is_one_of("tuple")[named.inner_root[nested]]]
        step[nested] = named.inner_root[nested]
        return step

    @cached_property
    def same_elements(self) -> Ints:
        """Through nameless instructions that keep the elements."""
        return self._through(KEEPS_ELEMENTS, ~self.named.has_strong_name)

    @cached_property
    def moved(self) -> Ints:
        """Through bitcasts and copies of any name, and others that keep elements if nameless.

        Bitcasts and copies have the name of what reads them.
        """
        moves = self.named.program.opcode.is_one_of("bitcast", "copy")
        return self._through(KEEPS_ELEMENTS, moves | ~self.named.has_strong_name)

    @cached_property
    def computing(self) -> Ints:
        """The first instruction with a name: behind bitcasts, copies and the roots of fusions.

        If none behind has a name, the last one of these before that has; a bitcast, a copy or
        a fusion may have the name of what is beside it.
        """
        named = self.named
        moves = named.program.opcode.is_one_of("bitcast", "copy")
        step = self._step_through(KEEPS_ELEMENTS, moves | ~named.has_strong_name, fusions=True)
        found = np.where(named.owns, np.arange(len(step)), NONE)
        end = step
        for _ in range(len(step).bit_length()):
            later = found[end]
            found = np.where(later != NONE, later, found)
            further = end[end]
            if np.array_equal(further, end):
                break
            end = further
        return np.where(found == NONE, end, found)

    @cached_property
    def some_elements(self) -> Ints:
        """Through nameless instructions that keep, take or repeat elements."""
        return self._through(TAKES_ELEMENTS, ~self.named.has_strong_name)

    @cached_property
    def sliced_from(self) -> Ints:
        """Through bitcasts and copies, and what keeps the elements: nameless, or named a slice."""
        named = self.named
        # XLA drops the dimension of a single slice by a bitcast, or by a reduce.
        reduces = named.program.opcode.is_one_of("reduce")
        allowed = (~named.has_strong_name & ~reduces) | named.takes_a_slice
        allowed |= named.program.opcode.is_one_of("bitcast", "copy")
        return self._through((*KEEPS_ELEMENTS, "reduce"), allowed)

    @cached_property
    def written(self) -> Ints:
        """Through bitcasts, copies and converts of any name: to a dynamic-update-slice, if any."""
        everything = np.ones(len(self.named.program), bool)
        return self._through(("bitcast", "copy", "convert"), everything)

    @cached_property
    def written_into(self) -> Ints:
        """Back through what a dynamic-update-slice writes into, to the buffer's beginning."""
        named, program = self.named, self.named.program
        step = self.same_elements.copy()
        rows = np.flatnonzero(
            named.is_fused & program.opcode.is_one_of("dynamic-update-slice", "copy", "bitcast")
        )
        step[rows] = program.operand(rows, 0)
        return followed(step)

    @cached_property
    def relayout_of(self) -> Ints:
        """Through what only rearranges, converts, cuts or pads, of any name."""
        everything = np.ones(len(self.named.program), bool)
        return self._through((*KEEPS_ELEMENTS, "slice", "pad", "dynamic-slice"), everything)

    def nearest(self, roots: Ints) -> Ints:
        """The nearest instruction that computes what its name says, back from each root.

        Nearest by the number of steps within the fusion, of equally near ones through the
        larger operands first. NONE where there is none. Constants and broadcasts of one number
        compute nothing.
        """
        is_constant = self.named.program.opcode.is_one_of("constant")
        found = self._nearest(roots, self.named.owns & ~is_constant & ~self.is_fill)
        hit = found != NONE
        found[hit] = self.computing[found[hit]]
        return found

    def weak(self, roots: Ints) -> Ints:
        """The nearest instruction with a wrapper's or a joined name, as in `nearest`."""
        idle = self.named.program.opcode.is_one_of("constant", "parameter")
        return self._nearest(roots, self.named.has_weak_name & ~idle)

    def _nearest(self, roots: Ints, counts: Mask) -> Ints:
        """The nearest instruction that counts, back from each root; NONE where there is none."""
        program = self.named.program
        found = np.full(len(roots), NONE)
        query = np.arange(len(roots))
        rows = roots
        seen = np.array([], np.int64)
        inside = self._through((), ~counts)
        while len(query):
            rows = inside[rows]
            hit = counts[rows]
            # The first of a level is the nearest: the level is in the order of the search.
            first, at = np.unique(query[hit], return_index=True)
            found[first] = rows[hit][at]
            left = found[query] == NONE
            query, rows = self._operands(query[left], rows[left])
            key = query * len(program) + rows
            _, at = np.unique(key, return_index=True)
            at = np.sort(at)
            at = at[~np.isin(key[at], seen)]
            seen = np.concatenate([seen, key[at]])
            query, rows = query[at], rows[at]
        return found

    def _operands(self, query: Ints, rows: Ints) -> tuple[Ints, Ints]:
        """The fused operands of a level's instructions, the larger ones first."""
        named, program = self.named, self.named.program
        # A nested fusion stands for its root.
        nested = program.opcode.is_one_of("fusion")[rows] & named.is_fused[rows]
        rows = np.where(nested, named.inner_root[rows], rows)
        counts = program.operand_count[rows]
        at = joined(program.operand_start[rows], counts)
        place = np.repeat(np.arange(len(rows)), counts)
        operands = program.operands[at]
        order = np.lexsort((-named.bytes[operands], place))
        order = order[named.is_fused[operands[order]]]
        return query[place[order]], operands[order]

    @cached_property
    def repeated(self) -> Ints:
        """Through what keeps or repeats all elements, of any name."""
        everything = np.ones(len(self.named.program), bool)
        return self._through((*KEEPS_ELEMENTS, "broadcast"), everything)

    @cached_property
    def is_fill(self) -> Mask:
        """Which fused instructions repeat one number that is a constant in the fusion."""
        constant = self.named.program.opcode.is_one_of("constant") & self.named.is_scalar
        found: Mask = self.named.is_fused & constant[self.repeated]
        return found

    def from_outside(self, reached: Ints, rows: Ints) -> Ints:
        """The value outside of the fusion that is reached from each of these instructions.

        `reached` is one of the answers above. NONE if an instruction inside is reached.
        """
        named = self.named
        outer = named.outer_operand[reached[rows]]
        found = np.full(len(rows), NONE)
        found[outer != NONE] = named.value_of(outer[outer != NONE])
        return found

    def root_of(self, values: Values, made: Ints) -> Ints:
        """The instruction at the root of the fusion that gives each of these values."""
        program = self.named.program
        root = self.named.inner_root[values.row[made]]
        is_tuple = program.opcode.is_one_of("tuple")[root]
        root[is_tuple] = program.operand(root[is_tuple], values.element[made[is_tuple]])
        return root
