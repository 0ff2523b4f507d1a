"""A webhook receiver: a real HTTP server that remembers what it got and answers as it is told."""

import base64
import hashlib
import hmac
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Got:
    """One request as it came."""

    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Receiver:
    """What was received, and what is answered next."""

    port: int = 0
    host: str = "127.0.0.1"
    status: int = 204
    answer: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    hold: threading.Event | None = None
    got: list[Got] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://{self.host}:{self.port}/in?token=abc"


def verified(got: Got, secret: str, *, now: float, tolerance_s: float = 300.0) -> bool:
    """Whether a receiver that follows Standard Webhooks would take the request.

    Written from the specification.
    """
    if abs(now - int(got.headers["webhook-timestamp"])) > tolerance_s:
        return False
    key = base64.b64decode(secret.removeprefix("whsec_"))
    said = f"{got.headers['webhook-id']}.{got.headers['webhook-timestamp']}.".encode() + got.body
    expected = base64.b64encode(hmac.digest(key, said, hashlib.sha256)).decode()
    return any(
        hmac.compare_digest(one.removeprefix("v1,"), expected)
        for one in got.headers["webhook-signature"].split(" ")
        if one.startswith("v1,")
    )


@contextmanager
def receiving(host: str = "127.0.0.1", *, tls: ssl.SSLContext | None = None) -> Iterator[Receiver]:
    """Serve until the block ends."""
    receiver = Receiver(host=host)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            headers = {name.lower(): value for name, value in self.headers.items()}
            receiver.got.append(Got(self.path, headers, body))
            if receiver.hold is not None:
                receiver.hold.wait(20)
            self.send_response(receiver.status)
            for name, value in receiver.headers.items():
                self.send_header(name, value)
            if receiver.status != 204:
                self.send_header("content-length", str(len(receiver.answer)))
            self.end_headers()
            self.wfile.write(receiver.answer)

        do_GET = do_POST  # noqa: N815

        def log_message(self, *args: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *args: object) -> None:
            pass

    server = Server((host, 0), Handler)
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    receiver.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield receiver
    finally:
        if receiver.hold is not None:
            receiver.hold.set()
        server.shutdown()
        server.server_close()
        thread.join()
