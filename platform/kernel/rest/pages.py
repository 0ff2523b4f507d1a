"""Lists come newest first, a page at a time, by a cursor that new rows do not shift."""

import datetime as dt
import re
from typing import Any

from django.utils.dateparse import parse_datetime
from rest_framework.exceptions import NotFound, ValidationError
from rest_framework.pagination import CursorPagination
from rest_framework.request import Request


class NewestFirst(CursorPagination):
    """Ordered by (created_at, id), newest first; ids grow with time, so ties keep their order."""

    ordering = ("-created_at", "-id")
    page_size = 50
    page_size_query_param = "page_size"
    max_page_size = 200

    def get_page_size(self, request: Request) -> int:
        """Return how many rows a page has; raise ValidationError for a number out of bounds, which would be ignored."""
        given = request.query_params.getlist(self.page_size_query_param)
        if not given:
            return self.page_size
        if (
            len(given) == 1
            and re.fullmatch(r"[0-9]{1,4}", given[0])
            and 1 <= int(given[0]) <= self.max_page_size
        ):
            return int(given[0])
        raise ValidationError(
            {self.page_size_query_param: [f"Must be one whole number from 1 to {self.max_page_size}."]}
        )

    def get_schema_operation_parameters(self, view: Any) -> list[dict[str, Any]]:
        """Return the query's parameters, with the bounds of `page_size`."""
        described: list[dict[str, Any]] = super().get_schema_operation_parameters(view)
        for one in described:
            if one["name"] == self.page_size_query_param:
                one["schema"] = {
                    "type": "integer",
                    "minimum": 1,
                    "maximum": self.max_page_size,
                    "default": self.page_size,
                }
        return described

    def decode_cursor(self, request: Request) -> Any:
        """Return the cursor, in UTC; one whose position is no time, which the library would hand to the database, is a 404.

        Postgres knows no offset of sixteen hours or more, Python those of up to a day.
        """
        cursor = super().decode_cursor(request)
        if cursor is not None and cursor.position is not None:
            try:
                position = parse_datetime(str(cursor.position))
                if position is not None:
                    position = position.astimezone(dt.UTC)
            except (ValueError, OverflowError):  # of a year that there is not, perhaps only in UTC
                position = None
            if position is None:
                raise NotFound(self.invalid_cursor_message)
            # as the library writes those of rows, whatever its stubs say
            cursor = cursor._replace(position=str(position))  # type: ignore[arg-type]
        return cursor
