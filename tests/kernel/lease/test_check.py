"""Each command refuses a malformed field, in the order of the fields, before it reads anything."""

from typing import Any

import pytest
from msgspec.structs import replace

from leasehold.kernel.lease.budget import AMOUNT_MAXIMUM, Amounts, Budget
from leasehold.kernel.lease.check import check_command
from leasehold.kernel.lease.commands import LeaseCommand
from leasehold.kernel.lease.family import LEASES
from leasehold.kernel.lease.scope import Scope
from leasehold.kernel.ledger.commands import Command
from leasehold.kernel.ledger.refusals import Refusal, RefusalCode
from tests.kernel.deciding import decide, lease_view
from tests.kernel.records import ACQUIRE, COMMANDS, DERIVE, RELEASE, RENEW, REVOKE, SPEND, an_authority, at

BAD_FIELDS: list[tuple[LeaseCommand, list[dict[str, Any]]]] = [
    (
        ACQUIRE,
        [
            {"tenant": ""},
            {"request_id": ""},
            {"lease_id": ""},
            {"resource": "a" * 513},
            {"holder": ""},
            {"ttl_ns": 0},
            {"metadata": {"stranger": object()}},
            {"max_renewals": 2**31},
            {"config_version": "a" * 129},
            {"zone_version": "a" * 129},
            {"scope": Scope(unlimited=True, tools=("rm",))},
            {"budget": Budget(tokens=0)},
        ],
    ),
    (
        RENEW,
        [{"tenant": ""}, {"request_id": ""}, {"lease_ids": ()}, {"holder": ""}, {"ttl_ns": 0}],
    ),
    (RELEASE, [{"tenant": ""}, {"request_id": ""}, {"lease_ids": ()}, {"holder": ""}]),
    (
        REVOKE,
        [{"tenant": ""}, {"request_id": ""}, {"lease_id": ""}, {"operator": ""}, {"reason": "a" * 1_025}],
    ),
    (
        DERIVE,
        [
            {"tenant": ""},
            {"request_id": ""},
            {"parent_id": ""},
            {"holder": ""},
            {"lease_id": ""},
            {"resource": "a" * 513},
            {"child_holder": ""},
            {"metadata": {"stranger": object()}},
            {"scope": Scope(unlimited=True, tools=("rm",))},
            {"budget": Budget(tokens=0)},
            {"ttl_ns": 0},
            {"max_renewals": 2**31},
        ],
    ),
    (
        SPEND,
        [{"tenant": ""}, {"request_id": ""}, {"lease_id": ""}, {"holder": ""}, {"amounts": Amounts()}],
    ),
]

FIRST_BAD = [
    pytest.param(command, bad[position:], id=f"{type(command).__name__} {next(iter(bad[position]))}")
    for command, bad in BAD_FIELDS
    for position in range(len(bad))
]


def field_of(refusal: Refusal | None) -> str:
    assert refusal is not None
    assert refusal.code in (RefusalCode.INVALID_INPUT, RefusalCode.LIMIT_EXCEEDED)
    return str(refusal.field)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_well_formed_command_passes(command: Command) -> None:
    assert LEASES.check(command) is None


@pytest.mark.parametrize(("command", "bad"), FIRST_BAD)
def test_the_first_malformed_field_is_the_one_that_is_named(
    command: LeaseCommand, bad: list[dict[str, Any]]
) -> None:
    name = next(iter(bad[0])).removesuffix("_ns")
    alone = replace(command, **bad[0])
    everything_after_it_too = replace(command, **{key: value for one in bad for key, value in one.items()})

    assert field_of(check_command(alone)) == name
    assert field_of(check_command(everything_after_it_too)) == name


@pytest.mark.parametrize(("command", "bad"), FIRST_BAD)
def test_a_malformed_command_is_refused_unread(command: LeaseCommand, bad: list[dict[str, Any]]) -> None:
    malformed = replace(command, **bad[0])

    with_nothing_loaded = lease_view(an_authority())

    assert decide(malformed, with_nothing_loaded, at(60)) == check_command(malformed)


def test_limits_are_inclusive() -> None:
    largest = replace(
        ACQUIRE,
        tenant="t" * 128,
        request_id="r" * 128,
        resource="a" * 512,
        max_renewals=2**31 - 1,
        config_version="c" * 128,
        zone_version="z" * 128,
    )

    assert check_command(largest) is None
    assert check_command(replace(REVOKE, reason="a" * 1_024)) is None
    assert check_command(replace(RENEW, ttl_ns=1_000_000)) is None


@pytest.mark.parametrize("name", ["lease_id", "resource", "holder", "tenant", "request_id"])
def test_a_claim_with_a_name_that_no_store_could_keep_is_refused_and_not_an_error(name: str) -> None:
    assert field_of(check_command(replace(ACQUIRE, **{name: "\ud800"}))) == name


def test_any_negative_number_of_renewals_is_well_formed() -> None:
    assert check_command(replace(ACQUIRE, max_renewals=-(2**70))) is None


@pytest.mark.parametrize(
    ("scope", "field", "detail"),
    [
        (Scope(work_ids=("",)), "work_ids", "must not be empty"),
        (Scope(tools=("a" * 513,)), "tools", "is 513 bytes long; at most 512 are allowed"),
        (Scope(namespaces=("data\n",)), "namespaces", "must not contain control characters"),
        (Scope(namespaces=("a/../b",)), "namespaces", "must not have a '..' component, as 'a/../b' has"),
        (Scope(tools=("a",) * 200, work_ids=("b",) * 57), "scope", "must name at most 256 things"),
        (
            Scope(unlimited=True, namespaces=("data",)),
            "scope",
            "must either be unlimited or name what it allows",
        ),
    ],
)
def test_a_scope_that_cannot_be_meant_is_refused(scope: Scope, field: str, detail: str) -> None:
    for command in (replace(ACQUIRE, scope=scope), replace(DERIVE, scope=scope)):
        refusal = check_command(command)

        assert refusal is not None
        assert (refusal.field, refusal.detail) == (field, detail)


@pytest.mark.parametrize("scope", [Scope(), Scope(unlimited=True), Scope(tools=("a" * 512,) * 256)])
def test_a_scope_may_be_empty_unlimited_or_long(scope: Scope) -> None:
    assert check_command(replace(ACQUIRE, scope=scope)) is None


@pytest.mark.parametrize(
    ("budget", "detail"),
    [
        (Budget(tokens=0), "must grant at least 1 of tokens: a budget is exhausted when any part of it is 0"),
        (
            Budget(episodes=-1),
            "must grant at least 1 of episodes: a budget is exhausted when any part of it is 0",
        ),
        (Budget(tool_calls=2**53), f"must grant at most {AMOUNT_MAXIMUM} of tool_calls"),
    ],
)
def test_a_budget_that_cannot_be_meant_is_refused(budget: Budget, detail: str) -> None:
    for command in (replace(ACQUIRE, budget=budget), replace(DERIVE, budget=budget)):
        refusal = check_command(command)

        assert refusal is not None
        assert (refusal.field, refusal.detail) == ("budget", detail)


@pytest.mark.parametrize(
    ("amounts", "detail"),
    [
        (Amounts(), "must not all be 0"),
        (Amounts(tokens=5, episodes=-1), "must not be negative, as episodes is"),
        (Amounts(duration_ms=2**53), f"must be at most {AMOUNT_MAXIMUM} of duration_ms"),
    ],
)
def test_amounts_that_cannot_be_spent_are_refused(amounts: Amounts, detail: str) -> None:
    refusal = check_command(replace(SPEND, amounts=amounts))

    assert refusal is not None
    assert (refusal.field, refusal.detail) == ("amounts", detail)


def test_amounts_and_budgets_may_be_as_large_as_every_language_can_count() -> None:
    assert check_command(replace(SPEND, amounts=Amounts(tokens=AMOUNT_MAXIMUM))) is None
    assert check_command(replace(DERIVE, budget=Budget(tokens=AMOUNT_MAXIMUM, episodes=1))) is None
