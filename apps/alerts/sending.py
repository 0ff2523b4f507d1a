"""Bring one message to one place: a signed POST or a mail. Nothing here touches the ledger."""

import asyncio
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass

import aiohttp
from django.conf import settings

from apps.accounts import mails
from apps.alerts.addresses import AddressRefused, guarded_socket

ANSWER_BYTES = 4096  # read at most; the rest is left where it is
ANSWER_KEPT = 500  # characters
USER_AGENT = "Attune-Webhooks/1"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of an attempt. `status` None: there was no HTTP answer.
    `retry_after_s` is the receiver's wish."""

    delivered: bool
    status: int | None = None
    answer: str = ""
    error: str = ""
    took_ms: float = 0.0
    retry_after_s: float = 0.0

    @property
    def gone(self) -> bool:
        """Whether the receiver says that it wants no more of these, ever (410)."""
        return self.status == 410


def post(url: str, body: bytes, headers: Mapping[str, str]) -> Outcome:
    """POST a body once, without following redirects, within the time limit;
    never raises for what the receiver does."""
    started = time.monotonic()
    try:
        status, answer, retry_after = asyncio.run(_post(url, body, headers))
    except AddressRefused as error:
        return Outcome(delivered=False, error=str(error)[:300], took_ms=_since(started))
    except TimeoutError:
        said = f"no answer within {settings.WEBHOOK_TIMEOUT_S:g} s"
        return Outcome(delivered=False, error=said, took_ms=_since(started))
    except (aiohttp.ClientError, OSError, ValueError) as error:
        said = f"{type(error).__name__}: {error}"[:300]
        return Outcome(delivered=False, error=said, took_ms=_since(started))
    delivered = 200 <= status < 300
    return Outcome(
        delivered=delivered,
        status=status,
        answer=answer,
        error="" if delivered else f"it answered {status}",
        took_ms=_since(started),
        retry_after_s=retry_after,
    )


def mail(*, to: str, subject: str, text: str, message_id: str) -> Outcome:
    """Send one mail; a mail server that is away is an outcome.

    `message_id` is the same each time it is tried.
    """
    started = time.monotonic()
    error = mails.send(to=to, subject=subject, text=text, message_id=message_id)
    return Outcome(delivered=not error, error=error, took_ms=_since(started))


async def _post(url: str, body: bytes, headers: Mapping[str, str]) -> tuple[int, str, float]:
    refused: list[AddressRefused] = []
    secure = url.startswith("https://")

    def socket_for(info: aiohttp.AddrInfoType) -> socket.socket:
        try:
            return guarded_socket(info, secure=secure)
        except AddressRefused as error:
            refused.append(error)
            raise

    connector = aiohttp.TCPConnector(
        use_dns_cache=False, force_close=True, limit=1, socket_factory=socket_for
    )
    # no proxy or .netrc from the surroundings, no cookies, nothing decompressed:
    # an answer is read as it comes
    async with aiohttp.ClientSession(
        connector=connector,
        timeout=aiohttp.ClientTimeout(total=settings.WEBHOOK_TIMEOUT_S),
        cookie_jar=aiohttp.DummyCookieJar(),
        auto_decompress=False,
        trust_env=False,
    ) as session:
        try:
            async with session.post(
                url,
                data=body,
                headers={**headers, "content-type": "application/json", "user-agent": USER_AGENT},
                allow_redirects=False,
            ) as response:
                answer = await response.content.read(ANSWER_BYTES)
                # a body may hold anything; Postgres takes no NUL
                text = answer.decode(errors="replace").replace("\x00", "\ufffd")[:ANSWER_KEPT]
                return response.status, text, _seconds(response.headers.get("Retry-After", ""))
        except aiohttp.ClientConnectorError as error:
            if refused:
                raise refused[-1] from error
            raise


def _seconds(header: str) -> float:
    """Return a Retry-After in seconds; a date, or nonsense, is none."""
    return float(header) if header.isdecimal() and len(header) < 10 else 0.0


def _since(started: float) -> float:
    return (time.monotonic() - started) * 1000
