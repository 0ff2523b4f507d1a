"""Lists come newest first, a page at a time, by a cursor that new rows do not shift."""

from typing import Any

from django.utils.dateparse import parse_datetime
from rest_framework.exceptions import NotFound
from rest_framework.pagination import CursorPagination
from rest_framework.request import Request


class NewestFirst(CursorPagination):
    """Ordered by (created_at, id), newest first; ids grow with time, so ties keep their order."""

    ordering = ("-created_at", "-id")
    page_size = 50
    page_size_query_param = "page_size"
    max_page_size = 200

    def decode_cursor(self, request: Request) -> Any:
        """Return the cursor; one whose position is no time, which the library would hand to the database, is a 404."""
        cursor = super().decode_cursor(request)
        if cursor is not None and cursor.position is not None:
            try:
                position = parse_datetime(str(cursor.position))
            except ValueError:
                position = None
            if position is None:
                raise NotFound(self.invalid_cursor_message)
        return cursor
