"""Nobody's webhook reaches what is inside the house."""

# ruff: noqa: S104  # addresses that are refused

import datetime as dt
import ipaddress
import socket
import ssl
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from django.utils import timezone
from pytest_django import Settings

from apps.alerts import endpoints, sending, signing
from apps.alerts.addresses import check_url, reachable
from apps.alerts.models import Event, WebhookEndpoint
from kernel.errors import Conflict, InvalidInput
from kernel.models import AuditEntry
from tests.apps.alerts.receiver import receiving
from tests.tenants import Somebody

INSIDE = [
    "127.0.0.1", "127.1.2.3", "0.0.0.0", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1",
    "169.254.169.254", "100.64.0.1", "192.0.0.192", "198.18.0.1", "224.0.0.1", "239.1.1.1", "240.0.0.1",
    "255.255.255.255", "192.0.2.1", "::1", "::", "fe80::1", "fc00::1", "fd00:ec2::254", "ff02::1",
    "::ffff:127.0.0.1", "::ffff:169.254.169.254", "64:ff9b::7f00:1", "64:ff9b:1::1", "2002:7f00:1::1",
    "::127.0.0.1", "2001:db8::1", "fec0::1",
]  # fmt: skip
OUTSIDE = ["93.184.215.14", "1.1.1.1", "2606:4700:4700::1111", "::ffff:1.1.1.1", "64:ff9b::101:101"]


@pytest.mark.parametrize("address", INSIDE)
def test_an_address_inside_is_out_of_reach(address: str) -> None:
    assert not reachable(ipaddress.ip_address(address), secure=True)


@pytest.mark.parametrize("address", OUTSIDE)
def test_a_public_address_is_reached_over_tls_only(address: str) -> None:
    assert reachable(ipaddress.ip_address(address), secure=True)
    assert not reachable(ipaddress.ip_address(address), secure=False)


def test_the_setting_opens_what_it_names_and_nothing_else(settings: Settings) -> None:
    settings.WEBHOOK_ALLOWED_NETWORKS = ["10.1.0.0/16", "fd00::/8"]
    for address, open_ in [("10.1.2.3", True), ("10.2.0.1", False), ("fd00::7", True), ("127.0.0.1", False)]:
        assert reachable(ipaddress.ip_address(address), secure=False) is open_, address
    assert reachable(ipaddress.ip_address("::ffff:10.1.2.3"), secure=False)


@pytest.mark.parametrize(
    "url",
    [
        "http://hooks.example/in", "ftp://hooks.example", "https://", "hooks.example", "https://127.0.0.1/",
        "https://[::1]/", "https://169.254.169.254/latest", "https://user:pass@hooks.example/",
        "https://hooks.example/#x", "https://hooks.example:0/", "https://hooks.example:99999/",
        "https://hooks.example/a b", "https://hooks.example/\r\nHost: x", "https://[::ffff:10.0.0.1]/",
        "https://hooks.example/" + "x" * 2000, "javascript:alert(1)", "file:///etc/passwd", "",
    ],
)  # fmt: skip
def test_an_address_that_is_none_is_refused_by_field(url: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        check_url(url)
    assert refused.value.field == "url"


def test_plain_http_is_taken_only_where_a_network_is_open(settings: Settings) -> None:
    settings.WEBHOOK_ALLOWED_NETWORKS = ["10.1.0.0/16"]
    assert check_url(" http://hooks.internal/in ") == "http://hooks.internal/in"


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "0.0.0.0", "2130706433", "0x7f000001", "127.1"])
def test_whatever_it_is_called_this_machine_is_not_connected_to(host: str) -> None:
    with receiving() as receiver:
        outcome = sending.post(f"http://{host}:{receiver.port}/", b"{}", {})
        assert (outcome.delivered, outcome.status, receiver.got) == (False, None, [])
        assert outcome.error


def test_what_is_refused_is_named(settings: Settings) -> None:
    outcome = sending.post("https://localhost:9/", b"{}", {})
    assert outcome.error in ("127.0.0.1 is not a public address", "::1 is not a public address")


def test_a_name_that_changes_its_mind_gains_nothing(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The address that was checked is the one that is connected to: the name is looked up once an attempt."""
    settings.WEBHOOK_ALLOWED_NETWORKS = ["127.0.0.2/32"]
    asked: list[str] = []
    real = socket.getaddrinfo

    def flips(host: Any, *args: Any, **more: Any) -> Any:
        if host not in ("rebind.example", b"rebind.example"):
            return real(host, *args, **more)
        asked.append(str(host))
        return real("127.0.0.2" if len(asked) == 1 else "127.0.0.1", *args, **more)

    monkeypatch.setattr(socket, "getaddrinfo", flips)
    with receiving("127.0.0.2") as good:
        url = f"http://rebind.example:{good.port}/in"
        first = sending.post(url, b"{}", {})
        assert (first.delivered, len(asked), len(good.got)) == (True, 1, 1)
        assert good.got[0].headers["host"] == f"rebind.example:{good.port}"
        second = sending.post(url, b"{}", {})
        assert (second.delivered, second.error) == (False, "127.0.0.1 is not a public address")
        assert (len(asked), len(good.got)) == (2, 1)


def test_tls_is_asked_for_by_name_and_an_unknown_certificate_is_refused(
    tmp_path: Any, settings: Settings
) -> None:
    settings.WEBHOOK_ALLOWED_NETWORKS = ["127.0.0.0/8", "::1/128"]
    asked: list[str | None] = []
    context = _own_certificate(tmp_path)
    context.sni_callback = lambda _socket, name, _context: asked.append(name)
    with receiving(tls=context) as receiver:
        outcome = sending.post(f"https://localhost:{receiver.port}/", b"{}", {})
        assert asked == ["localhost"]
        assert receiver.got == []
    assert outcome.delivered is False
    assert "certificate verify failed" in outcome.error


def test_the_surroundings_proxy_is_not_used(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.WEBHOOK_ALLOWED_NETWORKS = ["127.0.0.0/8"]
    with receiving() as proxy, receiving() as receiver:
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
        assert sending.post(receiver.url, b"{}", {}).delivered
        assert (len(proxy.got), len(receiver.got)) == (0, 1)


def test_the_signature_is_that_of_a_published_example() -> None:
    # from the test suites of the reference libraries
    assert signing.headers(
        message_id="msg_p5jXN8AQM9LWM0D4loKWxJek",
        timestamp=1614265330,
        body=b'{"test": 2432232314}',
        secrets=[signing.read("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")],
    ) == {
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }


def test_an_endpoint_names_known_events_and_there_are_ten_at_most(somebody: Somebody) -> None:
    def make(*events: str, url: str = "https://hooks.example/in?token=abc") -> WebhookEndpoint:
        return endpoints.create_endpoint(
            tenant_id=somebody.tenant.id, url=url, events=events, actor="user:1"
        )[0]

    with pytest.raises(
        InvalidInput, match=r"there is no event 'turn.made'; there are version.live, "
    ) as wrong:
        make("turn.made")
    assert wrong.value.field == "events"
    with pytest.raises(InvalidInput, match="at least one"):
        make()
    assert WebhookEndpoint.objects.count() == 0
    assert AuditEntry.objects.filter(action="webhook.create").count() == 0
    for _ in range(10):
        made = make(Event.RUN_FAILED, Event.RUN_FAILED)
    assert made.events == ["run.failed"]
    with pytest.raises(Conflict, match="at most 10"):
        make(Event.RUN_FAILED)
    assert AuditEntry.objects.filter(action="webhook.create").count() == 10


def _own_certificate(folder: Any) -> ssl.SSLContext:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = timezone.now()
    day = dt.timedelta(days=1)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(7)
        .not_valid_before(now - day)
        .not_valid_after(now + day)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    file = folder / "own.pem"
    file.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        + certificate.public_bytes(serialization.Encoding.PEM)
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    return context
