"""What a device needs for all programs of a run, one after the other."""

from ....schema.readable import human_bytes
from ...catalogue import statement
from ...cells import counted
from ..asked_program import Program
from ..finding import Finding, Grade

PLACE, COMPUTES_AGAIN = 10, False
NEEDS: frozenset[str] = frozenset()

# All programs that need less than this part more than the largest are not worth a finding.
_WORTH = 0.01


def beside(program: Program) -> list[Finding]:
    """At most one finding, a fact: the arguments of all programs, and the largest need beyond.

    Programs of one run and workload are taken to be of one process, whose arguments all stay on
    the device. Whether two arguments are one array no dump says: by name, type and dimensions they
    can be, which is the least that is needed, or are all apart, which is the most.
    """
    (row,) = program.store.rows(
        statement("advise.programs"), [program.dump_id, program.layout.memory_space]
    ).to_pylist()
    peak, least, most = row["largest_bytes"], row["shared_bytes"], row["apart_bytes"]
    if row["programs"] < 2 or least is None or most - peak <= _WORTH * peak:
        return []
    others = counted(row["programs"] - 1, "other program")
    size = human_bytes(least)
    if human_bytes(most) != size:
        size = f"{size} to {human_bytes(most)}"
    return [
        Finding(
            kind="programs of one device",
            title=f"with {others} of its workload on the device, it needs {size}",
            grade=Grade.fact,
            write="give programs the same arrays where they can share them, and delete() arrays"
            " that the next program does not take",
            why=f"the largest peak of one is {human_bytes(peak)}, but the arguments of all stay;"
            " the more if arguments of one name and shape are different arrays",
            value_ids=(),
        )
    ]
