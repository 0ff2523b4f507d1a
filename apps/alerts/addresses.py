"""Which addresses a webhook may reach: tenants name them,
so none inside the house unless a setting allows it."""

import ipaddress
import socket
from urllib.parse import urlsplit

from aiohttp import AddrInfoType
from django.conf import settings

from kernel.errors import InvalidInput

URL_CHARACTERS = 2000
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_PROTOCOL4 = ipaddress.ip_network("192.0.0.0/24")  # of protocols, and of a cloud's metadata
_UNICAST6 = ipaddress.ip_network("2000::/3")  # all of IPv6 that is given out to the public

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class AddressRefused(OSError):
    """The resolved address lies inside the house."""


def check_url(url: str) -> str:
    """Return a webhook's address as it is kept, or raise InvalidInput.

    What it resolves to is checked at each connect.
    """
    url = url.strip()
    if len(url) > URL_CHARACTERS:
        raise InvalidInput(f"an address has at most {URL_CHARACTERS} characters", field="url")
    if any(not character.isprintable() or character.isspace() for character in url):
        raise InvalidInput("an address has no spaces or control characters", field="url")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise InvalidInput(f"this is not an address: {error}", field="url") from error
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InvalidInput("an address begins with https:// and names a host", field="url")
    if parts.scheme == "http" and not settings.WEBHOOK_ALLOWED_NETWORKS:
        raise InvalidInput("an address begins with https://", field="url")
    if parts.username is not None or parts.password is not None or parts.fragment:
        raise InvalidInput("an address has no name, password or fragment in it", field="url")
    if port == 0:
        raise InvalidInput("there is no port 0", field="url")
    try:
        literal = ipaddress.ip_address(parts.hostname)
    except ValueError:
        return url
    if not reachable(literal, secure=parts.scheme == "https"):
        raise InvalidInput(f"{literal} is not a public address", field="url")
    return url


def shown(url: str) -> str:
    """Return scheme and host of an address: its path and query are often as good as a password."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.hostname}" + (f":{parts.port}" if parts.port else "")


def reachable(address: Address, *, secure: bool) -> bool:
    """Whether a webhook may go there: over TLS to any public address,
    in any way to those that the setting names."""
    inner = _inner(address)
    if any(inner.version == network.version and inner in network for network in _allowed()):
        return True
    given_out = inner in _UNICAST6 if inner.version == 6 else inner not in _PROTOCOL4
    return secure and given_out and inner.is_global and not inner.is_multicast


def guarded_socket(info: AddrInfoType, *, secure: bool) -> socket.socket:
    """Return an unconnected socket for an address that was resolved just now;
    AddressRefused where it may not be reached.

    Asked for each connection with the very address that is connected to next, so a name that resolves to
    something else a moment later gains nothing.
    """
    family, kind, protocol, _, where = info
    address = ipaddress.ip_address(str(where[0]).partition("%")[0])
    if not reachable(address, secure=secure):
        raise AddressRefused(f"{address} is not a public address")
    made = socket.socket(family, kind, protocol)
    made.settimeout(0)  # the event loop connects it
    return made


def _inner(address: Address) -> Address:
    """Return the IPv4 address that an IPv6 one only wraps."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address.sixtofour is not None:
        return address.sixtofour
    if address.teredo is not None:
        return address.teredo[1]
    if address in _NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address


def _allowed() -> list[ipaddress.IPv4Network | ipaddress.IPv6Network]:
    return [ipaddress.ip_network(text) for text in settings.WEBHOOK_ALLOWED_NETWORKS]
