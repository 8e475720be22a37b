"""Every role at every route that the OpenAPI document has, about what is its tenant's and about another's."""

from collections.abc import Iterator

import pytest

from tests.server.document import OPERATIONS, STREAM, Operation
from tests.server.running import RunningServer
from tests.server.things import Things, ask_about, like, things_of, told

ROLES = ("viewer", "holder", "operator", "admin")
ENDING = [operation for operation in OPERATIONS if operation.path != STREAM]

TAKES_MORE = {
    "GET /v1/leases/{lease_id}/certificate": "holder",
    "POST /v1/leases/{lease_id}/revoke": "operator",
    "POST /v1/files/force-release": "operator",
    "POST /v1/workflows/revoke": "operator",
    "PUT /v1/settings/{key}": "operator",
    "GET /v1/access": "admin",
    "POST /v1/access": "admin",
    "POST /v1/access/{key_id}/rotate": "admin",
    "POST /v1/access/{key_id}/revoke": "admin",
}
"""What takes more than to look at something, or to hold something."""

FOR_NO_TENANT = ("/metrics",)
"""What is about all tenants at once, so that a key that is bound to one gets nothing."""


def least_role(operation: Operation) -> str:
    return TAKES_MORE.get(str(operation), "viewer" if operation.is_question else "holder")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with RunningServer(tmp_path_factory.mktemp("served") / "store", "--wait-maximum", "0.1") as running:
        yield running


def key_of(server: RunningServer, role: str, tenant: str) -> str:
    reply = server.ask("POST", "/v1/access", {"role": role}, headers={"Leasehold-Tenant": tenant})
    assert reply.status == 201, reply.body
    return str(reply.body["text"])


def everything_of(server: RunningServer, things: Things) -> list[object]:
    """How all of a tenant's things stand, by what an admin of all tenants can list."""
    lists = [
        "/v1/leases",
        "/v1/files",
        "/v1/work/domains",
        "/v1/workflows",
        "/v1/workflows/subscriptions",
        "/v1/settings",
        "/v1/access",
    ]
    headers = {"Leasehold-Tenant": things.tenant}
    return [told(server.ask("GET", path, headers=headers), {}) for path in lists]


@pytest.mark.parametrize("role", ROLES)
def test_what_another_tenant_has_is_as_what_nobody_has(server: RunningServer, role: str) -> None:
    theirs = things_of(server, f"theirs-{role}")
    nobodys = like(theirs)
    key = key_of(server, role, f"ours-{role}")
    before = everything_of(server, theirs)
    leaks = []
    # Questions first: afterwards the tenant has things of its own, by these very names.
    for operation in sorted(ENDING, key=lambda one: not one.is_question):
        other, said = ask_about(server, operation, theirs, key=key)
        missing, said_of_missing = ask_about(server, operation, nobodys, key=key)
        if told(other, said) != told(missing, said_of_missing) or theirs.hidden in str(other.body):
            leaks.append((str(operation), told(other, said), told(missing, said_of_missing)))

    assert not leaks
    assert everything_of(server, theirs) == before, "somebody of another tenant has changed something"


@pytest.mark.parametrize("role", ROLES)
def test_a_key_acts_for_its_own_tenant_only(server: RunningServer, role: str) -> None:
    theirs = things_of(server, f"tenant-named-by-{role}")
    key = key_of(server, role, f"naming-{role}")
    for operation in ENDING:
        if not operation.path.startswith("/v1/"):
            continue
        replies = {
            tenant: ask_about(server, operation, theirs, key=key, tenant=tenant)[0]
            for tenant in (theirs.tenant, "a-tenant-of-nobody")
        }
        there, nowhere = (told(reply, {"tenant": tenant}) for tenant, reply in replies.items())
        assert there == nowhere, str(operation)
        assert replies[theirs.tenant].status == 403, str(operation)


@pytest.mark.parametrize("role", ROLES)
def test_a_role_may_do_what_it_is_for_and_no_more(server: RunningServer, role: str) -> None:
    ours = things_of(server, f"own-{role}")
    key = key_of(server, role, ours.tenant)
    wrong = []
    # What is for others first, while everything that it is about is still there.
    for operation in sorted(ENDING, key=lambda one: -ROLES.index(least_role(one))):
        if operation.path in FOR_NO_TENANT:
            continue
        reply, _ = ask_about(server, operation, ours, key=key)
        refused = reply.status == 403 and reply.code == "NOT_PERMITTED"
        if refused != (ROLES.index(role) < ROLES.index(least_role(operation))):
            wrong.append((str(operation), reply.status, reply.body))

    assert not wrong


@pytest.mark.parametrize("operation", ENDING, ids=str)
def test_nothing_is_told_without_a_key(server: RunningServer, operation: Operation) -> None:
    path = operation.path.replace("{", "").replace("}", "")

    reply = server.ask(operation.method, path, operation.example or None, key="")

    is_open = path in ("/healthz", "/readyz")
    assert (reply.status == 401) is not is_open


def test_the_list_of_exceptions_names_routes_that_exist() -> None:
    assert TAKES_MORE.keys() <= {str(operation) for operation in OPERATIONS}
