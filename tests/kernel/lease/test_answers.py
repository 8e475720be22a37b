import msgspec
import pytest

from leasehold.kernel.lease.answers import Answer, Ended, Granted, Released, Renewal, Renewed
from leasehold.kernel.ledger.commands import Swept
from leasehold.kernel.ledger.refusals import Refusal, RefusalCode
from tests.kernel.records import a_lease

LEASE = a_lease(signature=b"\x00\xff", metadata={"task": [1, None]})
LOST = Refusal(code=RefusalCode.LEASE_EXPIRED, lease_id="lease-2")


@pytest.mark.parametrize(
    "answer",
    [
        Granted(lease=LEASE, expires_in_ns=50),
        Granted(lease=LEASE, expires_in_ns=0, repeated=True, ended=True),
        Renewed(outcomes=(Renewal(lease=LEASE, expires_in_ns=50), LOST)),
        Released(outcomes=(LOST, Ended(lease=LEASE, already=True))),
        Ended(lease=LEASE),
        Swept(ended=True),
    ],
)
def test_an_answer_crosses_a_wire_as_it_is(answer: Answer | Swept) -> None:
    everything = msgspec.json.Decoder(Answer | Swept)

    assert everything.decode(msgspec.json.encode(answer)) == answer
