"""What an analysis returns: Arrow tables with captions, which convert to data frames."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..schema.errors import MissingPackageError

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow as pa


@dataclass(frozen=True)
class Rows:
    """Rows.

    table: the rows; caption: what they are rows of; empty: what to say if there are none.
    """

    table: pa.Table
    caption: str = ""
    empty: str = "no rows"

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

    def _repr_html_(self) -> str:
        from .html import table_html

        return table_html(self.table, self.caption, self.empty)


class Result:
    """A result of several tables. `rows` is the main one, which it converts to."""

    rows: Rows

    def tables(self) -> Sequence[Rows]:
        """All tables, as a notebook shows them."""
        return (self.rows,)

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

    def _repr_html_(self) -> str:
        return "\n".join(table._repr_html_() for table in self.tables())


def _missing(package: str) -> MissingPackageError:
    return MissingPackageError(f"install {package} to get a data frame: pip install {package}")
