"""Histories that earlier versions wrote replay for ever, to the state that they meant then.

The files in tests/golden are never changed. A new shape of an event gets a new file; what makes an old one
read as before belongs into `decode_event`.
"""

from pathlib import Path

import msgspec
import pytest

from leasehold.kernel.lease.events import StoreCheckpointed, decode_event, encode_event
from leasehold.kernel.ledger.checkpoint import decode_state, state_digest
from leasehold.kernel.ledger.state import State, replay

GOLDEN = sorted((Path(__file__).parents[2] / "golden").glob("*.jsonl"))


def test_there_are_golden_histories() -> None:
    assert [file.stem for file in GOLDEN] == ["schema-1-pruned", "schema-1-sealed", "schema-1-unsealed"]


@pytest.mark.parametrize("file", GOLDEN, ids=lambda file: file.stem)
def test_a_golden_history_replays_to_the_state_it_meant(file: Path) -> None:
    state = replay(decode_event(body) for body in file.read_bytes().splitlines())
    meant = msgspec.json.decode(file.with_suffix(".state.json").read_bytes(), type=State)
    assert state == meant


@pytest.mark.parametrize("file", GOLDEN, ids=lambda file: file.stem)
def test_a_golden_event_that_is_written_again_has_the_same_bytes(file: Path) -> None:
    for body in file.read_bytes().splitlines():
        assert encode_event(decode_event(body)) == body


def test_a_golden_checkpoint_leads_to_the_same_state_as_all_that_it_stands_for() -> None:
    file = next(file for file in GOLDEN if file.stem == "schema-1-pruned")
    events = [decode_event(body) for body in file.read_bytes().splitlines()]
    kept = file.with_suffix(".kept.json").read_bytes()
    checkpoint = next(event for event in events if isinstance(event, StoreCheckpointed))
    assert state_digest(kept) == checkpoint.state_digest
    state = decode_state(kept)
    for event in events[checkpoint.covers :]:
        state.apply(event)
    assert state == replay(events)
