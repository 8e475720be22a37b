"""TLS: what goes over the network cannot be read on the way."""

import http.client
import ssl
from pathlib import Path

import pytest
import trustme

import leasehold
from leasehold.errors import ReplyLost, StoreUnusable
from tests.server.running import RunningServer, ask_over


@pytest.fixture
def files(tmp_path: Path) -> tuple[trustme.CA, Path, Path]:
    authority = trustme.CA()
    issued = authority.issue_cert("localhost", "127.0.0.1")
    certificate, key = tmp_path / "chain.pem", tmp_path / "key.pem"
    issued.private_key_pem.write_to_path(key)
    for blob in issued.cert_chain_pems:
        blob.write_to_path(certificate, append=True)
    return authority, certificate, key


def test_a_server_with_a_certificate_speaks_tls_and_nothing_else(
    tmp_path: Path, files: tuple[trustme.CA, Path, Path]
) -> None:
    authority, certificate, key = files
    flags = ("--tls-certificate", str(certificate), "--tls-key", str(key), "--host", "127.0.0.1")
    with RunningServer(tmp_path / "store", *flags) as server:
        assert server.url.startswith("https://")
        trusting = ssl.create_default_context()
        authority.configure_trust(trusting)
        connection = server.connect(trusting)
        granted = ask_over(
            connection, "POST", "/v1/leases", {"resource": "door", "holder": "ann"}, key=server.key
        )
        assert granted.status == 201
        connection.close()
        distrusting = server.connect(ssl.create_default_context())
        with pytest.raises(ssl.SSLCertVerificationError):
            distrusting.request("GET", "/healthz")
        distrusting.close()
        with pytest.raises((http.client.HTTPException, OSError)):
            server.ask("GET", "/healthz")
        for url, kind, said in (
            (server.url, StoreUnusable, r"named with \$SSL_CERT_FILE"),
            (server.url.replace("https", "http"), ReplyLost, "not one with https://"),
        ):
            with leasehold.connect(url, api_key=server.key) as leases, pytest.raises(kind, match=said):
                leases.list()
        assert server.stop() == 0


def test_a_file_that_is_no_certificate_is_refused(
    tmp_path: Path, files: tuple[trustme.CA, Path, Path]
) -> None:
    _, _, key = files
    nonsense = tmp_path / "nonsense.pem"
    nonsense.write_text("nonsense")

    with pytest.raises(AssertionError, match="cannot be used for TLS"):
        RunningServer(tmp_path / "store", "--tls-certificate", str(nonsense), "--tls-key", str(key))
