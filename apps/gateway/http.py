"""The server's own answer to bytes that are no HTTP request, in the shape of all other refusals.

Used as `uvicorn --http apps.gateway.http:Protocol`.
"""

import orjson
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from apps.gateway.errors import error_object
from kernel.errors import InvalidInput


class Protocol(HttpToolsProtocol):  # type: ignore[misc]
    """uvicorn's HTTP with errors in OpenAI's shape."""

    def send_400_response(self, msg: str) -> None:
        """Refuse what could not be read as a request, and close the connection:
        what follows cannot be read either."""
        body = orjson.dumps(error_object(InvalidInput(msg, code="invalid_http")))
        lines = [
            STATUS_LINE[400],
            *(name + b": " + value + b"\r\n" for name, value in self.server_state.default_headers),
            b"content-type: application/json\r\n",
            b"content-length: %d\r\n" % len(body),
            b"connection: close\r\n\r\n",
            body,
        ]
        self.transport.write(b"".join(lines))
        self.transport.close()
