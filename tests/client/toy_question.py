"""What can be asked about the counters of `tests/families/toy.py`, and who answers it."""

from leasehold.engine.port import Snapshot
from leasehold.engine.questions import Question
from leasehold.engine.registrar import Registrar
from tests.families.toy import COUNTER, own_key


class FindCounter(Question[int | None], frozen=True, kw_only=True, tag="find_counter"):
    """Ask how far a counter has come."""

    name: str


def find_counter(registrar: Registrar, question: FindCounter, snapshot: Snapshot) -> int | None:
    del registrar
    record = snapshot.state().of(COUNTER).get(own_key(question.tenant or "", question.name))
    return None if record is None or record.closed_at_ns is not None else record.value
