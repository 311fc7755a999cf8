"""What an analysis returns: Arrow tables with captions, which convert to data frames."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..schema.errors import MissingPackageError

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow as pa


@dataclass(frozen=True, repr=False)
class Rows:
    """Rows, which a notebook and `print` show as a small table.

    table: the rows; caption: what they are rows of; empty: what to say if there are none;
    chart: draws the same for a notebook as HTML, or as nothing where that is not possible.
    """

    table: pa.Table
    caption: str = ""
    empty: str = "no rows"
    chart: Callable[[], str] | None = field(default=None, compare=False)

    def arrow(self) -> pa.Table:
        """The rows as a pyarrow table."""
        return self.table

    def df(self) -> pandas.DataFrame:
        """The rows as a pandas data frame. Raises MissingPackageError without pandas."""
        try:
            import pandas  # noqa: F401 - pyarrow's own message does not say what to do.
        except ImportError:
            raise _missing("pandas") from None
        return self.table.to_pandas()

    def pl(self) -> polars.DataFrame:
        """The rows as a polars data frame. Raises MissingPackageError without polars."""
        try:
            import polars
        except ImportError:
            raise _missing("polars") from None
        frame = polars.from_arrow(self.table)
        assert isinstance(frame, polars.DataFrame), "a table makes a frame"
        return frame

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def __repr__(self) -> str:
        return _plain(self)

    def _repr_html_(self) -> str:
        from .html import table_html

        return "\n".join([*_drawn(self), table_html(self.table, self.caption, self.empty)])


class Result:
    """A result of several tables. `rows` is the main one, which it converts to."""

    rows: Rows

    def tables(self) -> Sequence[Rows]:
        """All tables, as a notebook and `print` show them."""
        return (self.rows,)

    def sentences(self) -> Sequence[str]:
        """What is to be said above the tables."""
        return ()

    def arrow(self) -> pa.Table:
        """The main table as a pyarrow table."""
        return self.rows.arrow()

    def df(self) -> pandas.DataFrame:
        """The main table as a pandas data frame."""
        return self.rows.df()

    def pl(self) -> polars.DataFrame:
        """The main table as a polars data frame."""
        return self.rows.pl()

    def __len__(self) -> int:
        return len(self.rows)

    def __str__(self) -> str:
        tables = [_plain(table) for table in self.tables()]
        return "\n\n".join(["\n".join(self.sentences()), *tables]).strip()

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        from ..schema.small_table import paragraph
        from .html import table_html

        shown = [table_html(each.table, each.caption, each.empty) for each in self.tables()]
        return "\n".join([*map(paragraph, self.sentences()), *_drawn(self.rows), *shown])


def _drawn(rows: Rows) -> list[str]:
    """The chart of rows, if they have one and it can be drawn."""
    return list(filter(None, [rows.chart()])) if rows.chart is not None else []


def _plain(rows: Rows) -> str:
    from .plain_text import table_text

    return table_text(rows.table, rows.caption, rows.empty)


def _missing(package: str) -> MissingPackageError:
    return MissingPackageError(f"install {package} to get a data frame: pip install {package}")
