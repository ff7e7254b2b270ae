"""A pinned address behind a name: TLS asks for the name, and trusts only a certificate of that name."""

import datetime
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from assent.errors import TargetRefused
from assent.outbox.addresses import LOOPBACK, Allowed
from assent.outbox.client import Outbound
from assent.outbox.targets import Targets
from tests.receiver import Receiver, receiving

NAME = "hooks.example"


def certificate(name: str, file: Path) -> None:
    """A certificate for this name, and its key, in one file."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    file.write_bytes(made.public_bytes(serialization.Encoding.PEM) + private)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    certificate_file = tmp_path_factory.mktemp("tls") / "hooks.pem"
    certificate(NAME, certificate_file)
    return certificate_file


@pytest.fixture
async def receiver(file: Path) -> AsyncIterator[Receiver]:
    secured = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    secured.load_cert_chain(file)

    def remember(socket: Any, name: str | None, context: object) -> None:
        socket.asked_name = name

    secured.sni_callback = remember
    async with receiving(secured=secured) as webhook_receiver:
        yield webhook_receiver


def client(file: Path | None, host: str = NAME) -> Outbound:
    async def resolve(name: str, port: int) -> list[str]:
        return ["127.0.0.1"]

    trust = ssl.create_default_context(cafile=file) if file else None
    return Outbound(Targets(Allowed.named([*LOOPBACK])), resolve=resolve, trust=trust)


async def test_pinned_address_is_verified_by_its_name(receiver: Receiver, file: Path) -> None:
    outbound = client(file)
    answer = await outbound.send("POST", f"https://{NAME}:{receiver.port}/x", content=b"hello")
    await outbound.close()
    (call,) = receiver.calls
    assert answer.status == 200
    assert (call.server_name, call.headers["host"]) == (NAME, f"{NAME}:{receiver.port}")


async def test_another_name_at_the_same_address_is_not_trusted(receiver: Receiver, file: Path) -> None:
    """Not even right after a call to the first one, whose connection is still open."""
    outbound = client(file)
    await outbound.send("GET", f"https://{NAME}:{receiver.port}/")
    with pytest.raises(httpx.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
        await outbound.send("GET", f"https://other.example:{receiver.port}/")
    await outbound.close()
    assert len(receiver.calls) == 1


async def test_certificate_of_an_unknown_authority_is_not_trusted(receiver: Receiver) -> None:
    outbound = client(None)
    with pytest.raises(httpx.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
        await outbound.send("GET", f"https://{NAME}:{receiver.port}/")
    await outbound.close()


async def test_redirect_from_https_to_http_is_refused(receiver: Receiver, file: Path) -> None:
    async with receiving() as plain:
        receiver.answers.append(f"307 Over there\r\nlocation: {plain.url}")
        outbound = client(file)
        with pytest.raises(TargetRefused, match="https to http"):
            await outbound.send("POST", f"https://{NAME}:{receiver.port}/", content=b"secret")
        await outbound.close()
        assert plain.calls == []
