"""What a store would answer, worked out from everything there is, without any index."""

from collections.abc import Iterable, Mapping
from typing import Any

from leasehold.kernel.lease.events import LeaseIssued
from leasehold.kernel.lease.model import Lease, LeaseState
from leasehold.kernel.lease.records import CHILDREN, HELD, LEASE, UNENDED, WAITING, LeaseFound, LeaseWanted
from leasehold.kernel.ledger.events import Event
from leasehold.kernel.ledger.key import spell_key
from leasehold.kernel.ledger.records import BY_KEY, Found, Keys, Records, Scan, Wanted
from leasehold.kernel.ledger.state import State
from leasehold.stores.memory.queues import read_queues


def found(state: State, ledger: Iterable[Event], keys: Keys) -> Records:
    """What a store that keeps this state and this history would answer."""
    history = list(ledger)
    requests = {event.request: event for event in history if event.is_remembered}
    families: dict[str, Any] = {
        name: _leases_found(state.of(name), history, wanted)
        if name == LEASE
        else documents_found(state.of(name), wanted)
        for name, wanted in keys.families.items()
    }
    return Records(
        requests={key: requests[key] for key in keys.requests if key in requests},
        eras={number: era for number, era in state.eras.items() if number in keys.eras},
        families=families,
    )


def branch(state: State) -> State:
    """A state of its own that goes on from another one."""
    records = {name: dict(here) for name, here in state.records.items()}
    return State(records=records, authority=state.authority, eras=dict(state.eras), keys=dict(state.keys))


def documents_found(records: Mapping[str, Any], wanted: Wanted) -> Found:
    """What a shelf that knows only the order of its keys would answer."""
    answer = Found(records={key: records[key] for key in wanted.keys if key in records})
    _answer(answer, wanted, {BY_KEY: {key: key for key in records}}, records)
    return answer


def _leases_found(leases: Mapping[str, Lease], history: list[Event], asked: Wanted) -> LeaseFound:
    wanted = asked if isinstance(asked, LeaseWanted) else LeaseWanted(keys=asked.keys)
    unended = [lease for lease in leases.values() if not lease.is_terminal]
    named = {lease_id: leases[lease_id] for lease_id in wanted.keys if lease_id in leases}
    standing = {
        one.lease_id: one
        for one in unended
        if one.state is LeaseState.ACTIVE and (one.tenant, one.resource) in wanted.resources
    }
    grants: dict[str, Event] = {
        event.lease_id: event
        for event in history
        if isinstance(event, LeaseIssued) and event.lease_id in wanted.grants
    }
    answer = LeaseFound(records=named | standing, grants=grants)
    _answer(answer, wanted, _orders(leases), leases)
    read_queues(unended, wanted, answer)
    touched = wanted.resources | {(one.tenant, one.resource) for one in answer.records.values()}
    answer.awaited = {(one.tenant, one.resource) for one in unended if one.is_waiting} & touched
    return answer


def _orders(leases: Mapping[str, Lease]) -> dict[str, dict[str, str]]:
    """Each order that leases are kept in: the place of each in it, and its id."""
    orders: dict[str, dict[str, str]] = {HELD: {}, WAITING: {}, UNENDED: {}, CHILDREN: {}, BY_KEY: {}}
    for name, lease in leases.items():
        orders[BY_KEY][name] = name
        place = spell_key(lease.tenant, lease.holder, name)
        if lease.state is LeaseState.ACTIVE:
            orders[HELD][place] = name
            if lease.delegation is not None and lease.delegation.parent is not None:
                orders[CHILDREN][spell_key(lease.delegation.parent, lease.token, name)] = name
        if lease.is_waiting:
            orders[WAITING][place] = name
        if not lease.is_terminal:
            orders[UNENDED][place] = name
    return orders


def _answer(
    answer: Found, wanted: Wanted, orders: Mapping[str, Mapping[str, str]], records: Mapping[str, Any]
) -> None:
    for scan in wanted.scans:
        keys = _scanned(orders[scan.order], scan)
        answer.scans[scan] = keys
        answer.records |= {key: records[key] for key in keys}
    for count in wanted.counts:
        answer.counts[count] = sum(count.low <= place < count.high for place in orders[count.order])


def _scanned(order: Mapping[str, str], scan: Scan) -> list[str]:
    places = sorted((place for place in order if scan.low <= place < scan.high), reverse=scan.reverse)
    return [order[place] for place in places[: scan.limit]]
