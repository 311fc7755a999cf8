"""What `fit` found, as a result: sentences above a row a point, and a chart of the policies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from ..queries.result import Result, Rows
from ..report.cell_charts import policies_drawn
from ..report.page import Report

if TYPE_CHECKING:
    from ..report.fit_report import Policies


class Fitted(Result):
    """The largest sizes that fit, and all points that were compiled or found.

    name: of the program; rows: a row a point, the knee first, see `memhouse fit --help`; answers:
    what fits, in sentences; problems: what was left out; policies: where work differs, by the
    topology and the keywords that are not searched, each size that fits with the bytes and the
    work of a sample, in percent above the least; searched: the keyword that is searched.
    """

    def __init__(
        self,
        name: str,
        table: pa.Table,
        answers: Sequence[str],
        policies: Policies,
        searched: str,
        problems: Sequence[str] = (),
    ) -> None:
        self.name = name
        self.answers = list(answers)
        self.problems = list(problems)
        self.policies = policies
        self.searched = searched
        chart = policies_drawn(policies, searched) if policies else None
        self.rows = Rows(table, empty="nothing was compiled", chart=chart)

    def sentences(self) -> Sequence[str]:
        """What fits, and what was left out."""
        return [*self.answers, *self.problems]

    def report(self) -> Report:
        """A page of the sentences, the chart and the rows."""
        from ..report.fit_report import fit_report

        return fit_report(self.name, self.sentences(), self.rows, self.policies, self.searched)
