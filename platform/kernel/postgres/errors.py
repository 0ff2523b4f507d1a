"""What an error of the database says, wherever it is shown, logged or kept: never a row of it."""

import re

import psycopg

# invalid input syntax for type uuid: "…"; of what was sent, everything after the first quote
_VALUE = re.compile(r'(?<=: )".*"', re.DOTALL)


def leave_out_rows(error: BaseException) -> None:
    """Let an error of psycopg say its first line only, in place.

    What Postgres adds (the line of the statement, DETAIL, CONTEXT with the JSON that it read) is what
    people wrote, and the first line of a value that cannot be read ends with it. All of it stays on
    `error.diag`.
    """
    if isinstance(error, psycopg.Error) and (line := error.diag.message_primary):
        error.args = (_VALUE.sub("…", line) if (error.sqlstate or "").startswith("22") else line,)
