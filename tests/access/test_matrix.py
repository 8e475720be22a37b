"""Every role × every command, question and job × one's own tenant and another one's.

What another tenant has is, to who is bound to one, as if it were not there. So two worlds are compared: in
one the other tenant has everything that can be had; in the other a third one has the same, under other names,
and the other tenant has nothing. Whatever is asked by those names, the answers are the same to the letter.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from leasehold.access.law.model import ALL, Role
from leasehold.engine.desk import Failure
from leasehold.engine.jobs import Job
from leasehold.engine.questions import Certify, FindBeginning, FindHead, ListKeys, Question
from leasehold.engine.registrar import Registrar
from leasehold.errors import LeaseholdError
from leasehold.kernel.ledger.commands import LOCAL, Command, Right
from leasehold.kernel.ledger.draft import Draft
from leasehold.kernel.ledger.refusals import Refusal
from leasehold.kernel.ledger.tick import Now, Tick
from leasehold.kernel.ledger.view import View
from leasehold.registry import FAMILIES
from tests.access.samples import COMMANDS, JOBS, QUESTIONS, built, mixtures, pool
from tests.access.worlds import OWN, World
from tests.kernel.records import an_authority

THEM = "initech"
NOBODY = "globex"

RIGHTS: dict[Right, str] = {
    Right.LOOK: """
        find_lease find_holders find_children find_waiters find_won list_leases read_ledger follow_ledger
        find_beginning find_head list_keys find_around list_settings find_effective_settings take_tally
        work_find_domain work_list_domains work_find_watermark work_list_failed
        find_workflow list_workflows list_subscriptions find_bearer
    """,
    Right.HOLD: """
        acquire derive spend renew release change_mode transfer
        work_try_acquire work_enqueue work_succeed work_fail work_give_back work_keep_alive work_start_at
        claim_workflow accept_workflow emit_action transition_workflow answer_action hand_off_workflow
        finish_workflow subscribe_to_workflows acknowledge_workflows unsubscribe_from_workflows
        mark_workflow_guard certify record_bypass
    """,
    Right.OPERATE: """
        revoke change_setting sweep sweep_due is_anything_due verify prune rebuild apply_retention
    """,
    Right.ADMINISTER: """
        create_access_key rotate_access_key revoke_access_key list_access_keys
        backup rotate_key retire_key vouch_for_key
    """,
}
"""What everything takes that can be asked. A new request is to be put in here, after some thought."""

ASKED: tuple[type[Any], ...] = (*COMMANDS, *QUESTIONS, *JOBS)
DENIED = ("NOT_PERMITTED", "NOT_AUTHENTICATED")


def tag_of(kind: type[Any]) -> str:
    return str(kind.__struct_config__.tag)


def ask(desk: Registrar, asked: Any) -> Any:
    """What becomes of a request, as a value: an answer, or the code and the text of why not."""
    try:
        if isinstance(asked, Command):
            outcome = desk.call(asked)
        elif isinstance(asked, Question):
            outcome = desk.ask(asked)
        else:
            outcome = desk.start_job("job", asked).job
    except LeaseholdError as error:
        return error.code, str(error), error.facts
    if isinstance(outcome, Refusal):
        return outcome.rule or outcome.code.value, msgspec.to_builtins(outcome)
    assert not isinstance(outcome, Failure), outcome
    return "answered", None if isinstance(asked, Certify) else told(
        outcome
    )  # Each world signs with its own key.


def told(answer: Any) -> Any:
    """What an answer says, without the hashes and seals of entries, in which the whole ledger is."""

    def without(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: without(one) for key, one in value.items() if key not in ("hash", "seal", "body")}
        return [without(one) for one in value] if isinstance(value, list) else value

    return without(msgspec.to_builtins(answer, enc_hook=str))


@pytest.fixture(scope="module")
def roles() -> Iterator[World]:
    world = World(OWN)
    yield world
    world.close()


def test_everything_that_can_be_asked_is_classified() -> None:
    said = {tag: right for right, tags in RIGHTS.items() for tag in tags.split()}
    assert {tag_of(kind): kind.right for kind in ASKED} == said


def test_what_nobody_has_classified_takes_an_admin() -> None:
    assert Command.right is Question.right is Job.right is Right.ADMINISTER


@pytest.mark.parametrize("kind", ASKED, ids=tag_of)
def test_a_role_allows_what_it_is_for_and_nothing_else(roles: World, kind: type[Any]) -> None:
    for tenant in (OWN, ALL):
        for role in Role:
            outcome = ask(roles.desk(tenant, role), built(kind, pool(OWN)))
            for_operators = issubclass(kind, Job) or tag_of(kind) in ("sweep", "sweep_due", "is_anything_due")
            allowed = role.right >= kind.right and not (tenant == OWN and for_operators)
            assert (outcome[0] not in DENIED) is allowed, (tenant, role, outcome)


STORE_WIDE = (FindHead, FindBeginning, ListKeys)
"""About the ledger as a whole, which has no tenant."""


@pytest.mark.parametrize("kind", ASKED, ids=tag_of)
def test_no_family_would_refuse_a_local_caller_anything(kind: type[Any]) -> None:
    """So nobody asks them, and nothing is read for it."""
    draft = Draft(View(FAMILIES, an_authority()), Now(tick=Tick(value=0), wall_ns=0))

    for key in ("max_renewals", "auto_expire_enabled"):  # The second is for the whole store.
        asked = built(kind, {**pool(OWN), "key": key})
        assert [admits(LOCAL, asked, draft) for admits in FAMILIES.admitting] == [None, None]


def foreign(kind: type[Any]) -> list[Any]:
    """Requests that name something of the other tenant, each once."""
    requests = [built(kind, names) for names in (*mixtures(pool(OWN), pool(THEM)), pool(THEM))]
    if issubclass(kind, Question):
        requests += [msgspec.structs.replace(one, tenant=None) for one in requests]
    return list({msgspec.json.encode(one): one for one in requests}.values())


def renamed(request: Any, name: str) -> Any:
    """A request that is no repeat of another one."""
    return msgspec.structs.replace(request, request_id=name) if isinstance(request, Command) else request


@pytest.mark.parametrize("store", ["memory", "sqlite"])
@pytest.mark.parametrize("kind", [kind for kind in ASKED if kind not in STORE_WIDE], ids=tag_of)
def test_what_another_tenant_has_is_as_if_it_were_not_there(
    kind: type[Any], store: str, tmp_path: Path
) -> None:
    folders = [None, None] if store == "memory" else [tmp_path / "theirs", tmp_path / "others"]
    worlds = World(THEM, OWN, folder=folders[0]), World(NOBODY, OWN, folder=folders[1])
    requests = foreign(kind)
    try:
        for role in Role:
            for number, request in enumerate(requests):
                asked = renamed(request, f"{role} {number}")
                there, not_there = [ask(world.desk(OWN, role), asked) for world in worlds]
                assert there == not_there, asked
                ends = [world.registrar.ask(FindHead()).position for world in worlds]
                assert ends[0] == ends[1], asked
    finally:
        for world in worlds:
            world.close()


@pytest.fixture(scope="module")
def theirs() -> Iterator[World]:
    world = World(THEM, OWN)
    yield world
    world.close()


@pytest.mark.parametrize("kind", ASKED, ids=tag_of)
def test_nobody_bound_to_a_tenant_acts_for_another(theirs: World, kind: type[Any]) -> None:
    before = theirs.registrar.ask(FindHead())
    for role in Role:
        assert ask(theirs.desk(OWN, role), built(kind, pool(THEM)))[0] == "NOT_PERMITTED"
    assert theirs.registrar.ask(FindHead()) == before


@pytest.mark.parametrize("tag", ["acquire", "derive", "claim_workflow", "transfer"])
def test_of_a_lease_id_that_is_proposed_only_that_it_is_taken_can_be_learned(theirs: World, tag: str) -> None:
    """Lease ids are one space for all tenants, so this cannot be hidden from who knows one already."""
    (kind,) = (kind for kind in COMMANDS if tag_of(kind) == tag)
    field = "new_lease_id" if tag == "transfer" else "lease_id"
    request = msgspec.structs.replace(built(kind, pool(OWN)), **{field: f"{THEM}-child", "request_id": tag})
    if tag == "claim_workflow":
        request = msgspec.structs.replace(request, workflow_id="another")
    if tag == "acquire":
        request = msgspec.structs.replace(request, resource="another")
    code, facts = ask(theirs.desk(OWN, Role.HOLDER), request)
    assert code == "LEASE_EXISTS"
    assert set(facts) == {"type", "code", "lease_id"}
