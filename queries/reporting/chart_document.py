"""The charts of a page as one document of bokeh."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bokeh.models import UIElement


def chart_document(models: Sequence[UIElement]) -> dict[str, Any] | None:
    """The charts as one document, so that they can share ranges and data; None if there are none.

    `roots` are the ids of the charts, in their order.
    """
    if not models:
        return None
    from bokeh.embed.util import OutputDocumentFor

    # Of this call alone: the models may be in a document of the user's, and a report can be
    # written twice.
    with OutputDocumentFor(models, always_new=True) as document:
        return {
            "document": document.to_json(deferred=False),
            "roots": [model.id for model in models],
        }
