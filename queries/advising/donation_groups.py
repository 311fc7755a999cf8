"""Which arguments a program could donate, together or alone, and how sure what it brings is."""

from collections.abc import Sequence
from dataclasses import dataclass

from .asked_program import Program
from .donation import Donation, donate
from .finding import Grade
from .foreseen_copies import Foreseen, Foresight
from .jax_pairing import free_arrays, pair_up, partitions
from .on_chip import memory_on_chip
from .state import state_of

# Less than this part of the peak is not worth a finding.
_WORTH = 0.001
# How far the new peak was from the one told, in recompiled programs: one in twenty was lower.
_TPU_TOLERANCE = 0.01
# A program whose arguments are a few bytes needs no advice.
_LEAST_BYTES = 1 << 12


@dataclass(frozen=True)
class DonationGroup:
    """Arrays of arguments that a user can name, with the outputs that would take their place.

    alone: what donating each of several arguments brings without the others, in bytes.
    only_fits: the argument is an input of which nothing says that the output is its next value.
    """

    arguments: tuple[str, ...]
    foreseen: list[Foreseen]
    donation: Donation
    only_fits: bool
    alone: tuple[int, ...] = ()

    @property
    def named(self) -> str:
        """The arguments in a sentence."""
        *others, last = self.arguments
        return f"{', '.join(others)} and {last}" if others else last

    @property
    def size_bytes(self) -> int:
        """What all arrays of the arguments take, with padding."""
        return sum(each.pair.argument.padded_bytes for each in self.foreseen)

    @property
    def copied(self) -> list[Foreseen]:
        """What XLA copies all the same, the largest first."""
        return sorted(
            (each for each in self.foreseen if each.is_copied),
            key=lambda each: -each.pair.argument.padded_bytes,
        )

    @property
    def is_scanned(self) -> bool:
        """Whether a loop makes an output that is copied."""
        return any(each.loop is not None for each in self.copied)


def donation_groups(program: Program) -> list[DonationGroup]:
    """The groups worth telling: what is donated together, what a loop copies, what only fits."""
    arguments, outputs = free_arrays(program)
    if not arguments or not outputs:
        return []
    count = partitions(program)
    foresight = Foresight(program)
    state = state_of(program, foresight, arguments, outputs)
    of_state = pair_up([each for each in arguments if each in state], outputs, count)
    taken = {each.output for each in of_state}
    of_inputs = pair_up(
        [each for each in arguments if each not in state],
        [each for each in outputs if each not in taken],
        count,
    )
    groups = _groups(program, foresight.foresee(of_state), only_fits=False)
    groups += _groups(program, foresight.foresee(of_inputs), only_fits=True)
    worth = max(_WORTH * program.layout.peak_bytes, _LEAST_BYTES)
    large = [
        each
        for each in groups
        if each.size_bytes > worth and not (each.copied and _most(program, each) <= worth)
    ]
    return [each for each in _together(program, large) if _most(program, each) > worth]


def _groups(
    program: Program, foreseen: Sequence[Foreseen], *, only_fits: bool
) -> list[DonationGroup]:
    """The arrays by the argument that a user can name.

    Arrays for which donating brings nothing as the program is written are a group of their own.
    """
    by_name: dict[tuple[str, bool], list[Foreseen]] = {}
    for each in foreseen:
        key = each.pair.argument.top_level, _is_scanned_for_nothing(program, each)
        by_name.setdefault(key, []).append(each)
    return [
        DonationGroup((name,), group, donate(program, group), only_fits)
        for (name, _), group in by_name.items()
    ]


def _together(program: Program, groups: Sequence[DonationGroup]) -> list[DonationGroup]:
    """The arguments that one keyword donates as one group: weights go with their optimizer state.

    Figures of different grades, inputs, and what a loop copies stay apart.
    """
    alike: dict[object, list[DonationGroup]] = {}
    for group in groups:
        stays_alone = group.only_fits or group.is_scanned
        alike.setdefault(group.arguments if stays_alone else grade_of(program, group), []).append(
            group
        )
    return [_merged(program, each) if len(each) > 1 else each[0] for each in alike.values()]


def _merged(program: Program, groups: Sequence[DonationGroup]) -> DonationGroup:
    ordered = sorted(
        groups, key=lambda each: min(it.pair.argument.parameter_number or 0 for it in each.foreseen)
    )
    foreseen = [each for group in ordered for each in group.foreseen]
    return DonationGroup(
        tuple(name for group in ordered for name in group.arguments),
        foreseen,
        donate(program, foreseen),
        only_fits=False,
        alone=tuple(group.donation.least_bytes for group in ordered),
    )


def _most(program: Program, group: DonationGroup) -> int:
    """The most that is told to be saved."""
    grade, _ = grade_of(program, group)
    is_told_without_copies = grade is Grade.between or carries_copies(program, group)
    is_told_without_copies &= not group.only_fits
    return group.donation.most_bytes if is_told_without_copies else group.donation.least_bytes


def carries_copies(program: Program, group: DonationGroup) -> bool:
    """Whether donating alone brings nothing, because a loop copies what it gives out."""
    return any(_is_scanned_for_nothing(program, each) for each in group.foreseen)


def _is_scanned_for_nothing(program: Program, foreseen: Foreseen) -> bool:
    """Whether a TPU's loop copies the output, so that donating the argument saves nothing."""
    return (
        program.platform == "tpu"
        and foreseen.is_copied
        and foreseen.loop is not None
        and not _may_lie_in_vmem(program, foreseen)
    )


def _may_lie_in_vmem(program: Program, foreseen: Foreseen) -> bool:
    """Whether a TPU may make the copy on the chip, so that its main memory has none."""
    return foreseen.pair.argument.padded_bytes <= memory_on_chip(program)


def grade_of(program: Program, group: DonationGroup) -> tuple[Grade, float | None]:
    """How sure the figure is, and how far the new peak may be from the one told."""
    copied = group.copied
    if program.platform not in ("cpu", "tpu") or carries_copies(program, group):
        return Grade.at_most, None
    if copied and (
        program.platform == "cpu" or any(_may_lie_in_vmem(program, each) for each in copied)
    ):
        return Grade.between, None
    if program.platform == "cpu":
        return Grade.exact, 0.0
    return Grade.expected, _TPU_TOLERANCE
