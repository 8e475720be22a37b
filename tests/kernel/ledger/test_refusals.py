import msgspec
import pytest

from leasehold.kernel.lease.model import LeaseState, Mode
from leasehold.kernel.ledger.refusals import Refusal, RefusalCode


@pytest.mark.parametrize("code", list(RefusalCode))
def test_only_not_found_terminal_expired_and_not_holder_mean_that_a_lease_is_lost(code: RefusalCode) -> None:
    losses = {"LEASE_NOT_FOUND", "LEASE_TERMINAL", "LEASE_EXPIRED", "NOT_HOLDER"}

    assert code.means_loss == (code.value in losses)


def test_a_code_is_spelled_like_its_name() -> None:
    assert all(code.name == code.value for code in RefusalCode)


def test_a_refusal_crosses_a_wire_as_it_is_and_without_the_facts_that_do_not_apply() -> None:
    refusal = Refusal(code=RefusalCode.HELD, holder="ann", mode=Mode.SHARED, state=LeaseState.ACTIVE)
    body = msgspec.json.encode(refusal)

    assert body == b'{"type":"Refusal","code":"HELD","holder":"ann","mode":"shared","state":"active"}'
    assert msgspec.json.decode(body, type=Refusal) == refusal


def test_a_refusal_of_another_family_has_a_rule_and_facts_of_its_own() -> None:
    refusal = Refusal(
        code=RefusalCode.REFUSED, rule="OFFSET_TAKEN", facts={"offset": 7}, detail="it is taken"
    )
    body = msgspec.json.encode(refusal)

    assert msgspec.json.decode(body, type=Refusal) == refusal
    assert not refusal.code.means_loss
