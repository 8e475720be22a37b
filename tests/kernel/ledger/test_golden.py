"""Histories that earlier versions wrote replay for ever, to the state that they meant then.

The files in tests/golden are never changed. A new shape of an event gets a new file; what makes an old one
read as before belongs into `Families.decode_event`.
"""

from pathlib import Path
from typing import get_args

import pytest

from leasehold.kernel.lease.family import LEASES
from leasehold.kernel.ledger.chain import GENESIS_HASH, link
from leasehold.kernel.ledger.checkpoint import decode_state, state_digest
from leasehold.kernel.ledger.events import OwnEvent, StoreCheckpointed, encode_event
from leasehold.kernel.ledger.state import Folding, replay

GOLDEN = sorted((Path(__file__).parents[2] / "golden").glob("*.jsonl"))


def test_there_are_golden_histories() -> None:
    assert [file.stem for file in GOLDEN] == [
        "schema-1-circle",
        "schema-1-pruned",
        "schema-1-sealed",
        "schema-1-unsealed",
    ]


def test_every_event_that_there_is_has_an_example_among_them() -> None:
    kinds = {LEASES.decode_event(body).type for file in GOLDEN for body in file.read_bytes().splitlines()}
    assert kinds == {kind.__struct_config__.tag for kind in (*LEASES.of_event, *get_args(OwnEvent))}


@pytest.mark.parametrize("file", GOLDEN, ids=lambda file: file.stem)
def test_a_golden_history_replays_to_the_state_it_meant(file: Path) -> None:
    state = replay((LEASES.decode_event(body) for body in file.read_bytes().splitlines()), LEASES)
    meant = decode_state(file.with_suffix(".state.json").read_bytes(), LEASES)
    assert state == meant


@pytest.mark.parametrize("file", GOLDEN, ids=lambda file: file.stem)
def test_a_golden_event_that_is_written_again_has_the_same_bytes(file: Path) -> None:
    for body in file.read_bytes().splitlines():
        assert encode_event(LEASES.decode_event(body)) == body


def test_a_golden_checkpoint_leads_to_the_same_state_as_all_that_it_stands_for() -> None:
    file = next(file for file in GOLDEN if file.stem == "schema-1-pruned")
    events = [LEASES.decode_event(body) for body in file.read_bytes().splitlines()]
    kept = file.with_suffix(".kept.json").read_bytes()
    checkpoint = next(event for event in events if isinstance(event, StoreCheckpointed))
    covered = GENESIS_HASH
    for position, event in enumerate(events[: checkpoint.covers], start=1):
        covered = link(covered, position, encode_event(event))
    assert covered == checkpoint.covers_hash
    assert state_digest(kept) == checkpoint.state_digest
    folding = Folding(LEASES, decode_state(kept, LEASES))
    for event in events[checkpoint.covers :]:
        folding.apply(event)
    assert folding.state == replay(events, LEASES)
