"""What a type checker sees of the questions: `make lint` checks this file, and nothing runs it."""

# mypy: enable-error-code="arg-type, operator"

from typing import Literal, assert_type

import memhouse
from memhouse.queries.result import Rows


def asked(warehouse: memhouse.Warehouse) -> None:
    """Questions with parameters that they have; an ignored error must be one."""
    assert_type(warehouse.owners("m", by="scope"), Rows)
    assert_type(warehouse.check().outcome, Literal["pass", "fail", "not judged"])
    assert_type(warehouse.timeline(3), Rows)
    assert_type(warehouse.timeline("m", run="r", memory_space=0), Rows)
    warehouse.owners("m", limits=3)  # type: ignore[call-arg]
    warehouse.peaks(run=3)  # type: ignore[arg-type]
