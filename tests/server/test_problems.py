"""What errors look like over HTTP."""

import json

import pytest

from leasehold import errors
from leasehold.server.problems import BodyTooLarge, ServerStopping, problem


def test_a_refusal_has_its_code_the_next_step_and_the_facts() -> None:
    held = errors.Held(
        "door is held by ann; ask them", resource="door", holder="ann", since=5.0, retry_after=1.2
    )

    told = problem(held)

    assert told.status == 409
    assert told.headers["retry-after"] == "2"
    assert json.loads(told.body) == {
        "code": "HELD",
        "detail": "door is held by ann; ask them",
        "resource": "door",
        "holder": "ann",
        "since": "1970-01-01T00:00:05.000000Z",
        "retry_after": 1.2,
    }


def test_who_shows_no_key_is_told_how_to_show_one() -> None:
    told = problem(errors.NotAuthenticated("show an access key"))

    assert (told.status, told.headers["www-authenticate"]) == (401, 'Bearer realm="leasehold"')


@pytest.mark.parametrize(
    ("error", "status", "retry_after"),
    [
        (errors.StoreBusy("busy"), 503, "1"),
        (errors.StoreFailed("failed"), 503, "1"),
        (ServerStopping("stopping"), 503, "1"),
        (errors.RateLimited("slow down", retry_after=0.01), 429, "1"),
        (errors.StoreFull("full"), 507, "1"),
        (BodyTooLarge("large"), 413, None),
    ],
)
def test_who_may_ask_again_is_told_when(error: Exception, status: int, retry_after: str | None) -> None:
    told = problem(error)

    assert (told.status, told.headers.get("retry-after")) == (status, retry_after)


def test_a_defect_says_nothing_of_the_inside() -> None:
    told = problem(RuntimeError("secret lh_abc_def in /srv/store"))

    assert told.status == 500
    assert json.loads(told.body)["code"] == "DEFECT"
    assert b"secret" not in told.body
    assert b"/srv" not in told.body


def test_what_is_not_text_is_spelled_out() -> None:
    told = problem(errors.InvalidInput("resource \ud800 must be text", resource="\ud800"))

    assert json.loads(told.body) == {"code": "INVALID_INPUT", "detail": "resource \\ud800 must be text"}


@pytest.mark.parametrize("kind", [errors.StoreFull, errors.StoreDamaged, errors.StoreFailed])
def test_no_error_names_a_path_on_the_servers_disk(
    kind: type[errors.StoreError], caplog: pytest.LogCaptureFixture
) -> None:
    told = problem(kind("no luck with /srv/store/leases.db", path="/srv/store/leases.db", process_id=7))

    assert json.loads(told.body).keys() == {"code", "detail"}
    assert b"/srv" not in told.body
    assert (b"is unknown" in told.body) == kind.outcome_unknown
    assert "/srv/store" in caplog.text, "who runs the server is told"
