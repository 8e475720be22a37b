"""What the server can be told, and by whom."""

from pathlib import Path

import pytest

from leasehold.errors import InvalidInput
from leasehold.server.configuration import SETTINGS, Configuration, configured, described


def test_without_a_word_the_server_listens_on_loopback_and_lets_nobody_in_without_a_key() -> None:
    found = configured(None, {}, {})

    assert found.values == Configuration()
    assert (found.values.host, found.values.anonymous) == ("127.0.0.1", False)
    assert set(found.origins.values()) == {"default"}


def test_flags_come_before_the_environment_and_that_before_the_file(tmp_path: Path) -> None:
    file = tmp_path / "leasehold.toml"
    file.write_text('[serve]\nport = 1\nbody_timeout = 2\nwait_maximum = 3.5\nhost = "::1"\n')
    environment = {
        "LEASEHOLD_SERVE_PORT": "4",
        "LEASEHOLD_SERVE_BODY_TIMEOUT": "5",
        "LEASEHOLD_URL": "/srv/a",
    }

    found = configured(file, environment, {"port": "6"})

    assert found.values == Configuration(
        store="/srv/a", host="::1", port=6, body_timeout=5.0, wait_maximum=3.5
    )
    assert found.origins["port"] == "--port"
    assert found.origins["body_timeout"] == "$LEASEHOLD_SERVE_BODY_TIMEOUT"
    assert found.origins["wait_maximum"] == str(file)
    assert found.origins["store"] == "$LEASEHOLD_URL"
    assert found.origins["log_level"] == "default"


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("[serve]\nprot = 1\n", "did you mean 'port'"),
        ("port = 1\n", r"below \[serve\]"),
        ("[server]\nport = 1\n", "did you mean 'serve'"),
        ("[serve]\nport = 'many'\n", "port cannot be 'many'"),
        ("[serve]\nport = 70000\n", "port cannot be 70000"),
        ("[serve]\nport = true\n", "port cannot be True"),
        ("[serve]\nanonymous = 1\n", "anonymous cannot be 1"),
        ("[serve]\nbody_timeout = nan\n", "body_timeout cannot be nan"),
        ("[serve\n", "is not TOML"),
        ("serve = 1\n", "must be a table"),
    ],
)
def test_what_a_file_says_wrong_is_refused_with_what_was_meant(tmp_path: Path, text: str, meant: str) -> None:
    file = tmp_path / "leasehold.toml"
    file.write_text(text)

    with pytest.raises(InvalidInput, match=meant):
        configured(file, {}, {})


@pytest.mark.parametrize(
    ("variable", "value", "meant"),
    [
        ("LEASEHOLD_SERVE_PROT", "1", "did you mean 'LEASEHOLD_SERVE_PORT'"),
        ("LEASEHOLD_SERVE_PORT", "-1", "port cannot be '-1' .*LEASEHOLD_SERVE_PORT"),
        ("LEASEHOLD_SERVE_ANONYMOUS", "perhaps", "anonymous cannot be"),
        ("LEASEHOLD_SERVE_LOG_LEVEL", "loud", "one of debug, info"),
    ],
)
def test_what_the_environment_says_wrong_is_refused_as_well(variable: str, value: str, meant: str) -> None:
    with pytest.raises(InvalidInput, match=meant):
        configured(None, {variable: value}, {})


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.7", "leases.example.com"])
def test_nobody_beyond_loopback_is_served_without_a_key_or_in_clear(host: str) -> None:
    with pytest.raises(InvalidInput, match="anonymous is for loopback only"):
        configured(None, {}, {"host": host, "anonymous": True})
    with pytest.raises(InvalidInput, match="in clear"):
        configured(None, {}, {"host": host})
    assert configured(None, {}, {"host": host, "plain_http": True}).values.host == host


def test_half_of_tls_is_refused() -> None:
    with pytest.raises(InvalidInput, match="belong together"):
        configured(None, {}, {"tls_key": "key.pem"})


def test_the_example_for_a_deployment_is_understood() -> None:
    example = Path(__file__).resolve().parents[2] / "examples" / "deploy" / "leasehold.toml"

    assert configured(example, {}, {}).values.is_tls


def test_every_setting_says_what_it_means() -> None:
    assert all(described(name) for name in SETTINGS)
