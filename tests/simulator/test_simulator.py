"""A thousand worlds in which everything goes wrong, and every promise is kept."""

import os
import subprocess
import sys
from collections.abc import Callable
from hashlib import sha256

import pytest

from leasehold.engine.sealing import Sealer
from leasehold.engine.signing import SigningKey
from leasehold.kernel.ledger.authority import Authority
from leasehold.kernel.ledger.keys import Key
from simulator import SimulationFailed, Tally, simulate
from simulator.__main__ import troupes_of
from tests import lanes
from tests.mutations import search

SEEDS, CHUNK = (1_000, 250) if lanes.is_full_length() else (40, 40)


@pytest.mark.deep
@pytest.mark.timeout(900)  # A busy machine needs longer for so many worlds.
@pytest.mark.parametrize("first", range(0, SEEDS, CHUNK))
def test_every_promise_is_kept_while_everything_goes_wrong(first: int) -> None:
    tally = Tally()
    for seed in range(first, first + CHUNK):
        tally.counts.update(simulate(seed, troupes=troupes_of(seed)).tally.counts)
    # A simulator in which nothing happens any more would find nothing either.
    assert tally.missing() == []


def test_a_seed_is_the_same_world_every_time() -> None:
    first, second = history(7), history(7)
    assert first == second
    assert len(first) > 100


def test_a_seed_does_not_depend_on_the_order_in_which_python_keeps_sets() -> None:
    digests = {digest_in_a_process_of_its_own(hash_seed) for hash_seed in ("0", "1", "2")}
    assert digests == {digest(7)}


@pytest.mark.deep
def test_other_seeds_are_other_worlds() -> None:
    seeds = lanes.some_of(range(20), 4)
    assert len({simulate(seed).head for seed in seeds}) == len(seeds)


def test_a_broken_promise_names_its_seed_and_what_happened_last(monkeypatch: pytest.MonkeyPatch) -> None:
    # Whoever asks again gets a second grant: the oldest mistake of all.
    monkeypatch.setattr("leasehold.kernel.lease.rules.acquire.remembered", lambda request, view, now: None)
    with pytest.raises(SimulationFailed, match=r"^seed 0: .*granted") as failed:
        simulate(0)
    assert failed.value.seed == 0
    assert failed.value.lines


def test_a_violation_is_reported_even_where_the_engine_survives_it(monkeypatch: pytest.MonkeyPatch) -> None:
    # The engine takes an error in a batch for a defect, and goes on command by command.
    def refuse(*_: object) -> str:
        return "nothing is ever right"

    monkeypatch.setattr("simulator.truth.Truth.apply", refuse)
    with pytest.raises(SimulationFailed, match="nothing is ever right"):
        simulate(1)


def test_a_seal_that_does_not_fit_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("leasehold.engine.recording.seal", lambda key, *_: key.name + bytes(64))
    with pytest.raises(SimulationFailed, match="its seal with"):
        simulate(0)


def test_an_engine_that_goes_on_sealing_with_a_retired_key_is_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # The choice of a key is never taken again, whoever rotates it.
    choose = Sealer.key_for

    def once(self: Sealer, authority: Authority, read_keys: Callable[[], list[Key]]) -> SigningKey:
        return self._chosen or choose(self, authority, read_keys)

    monkeypatch.setattr(Sealer, "key_for", once)
    assert found("which was not admitted then")


def test_another_claim_that_passes_for_a_retry_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    # Whatever bears the id of a lease is taken for the claim that the lease was made for.
    monkeypatch.setattr(
        "leasehold.kernel.lease.rules.acquire.was_asked_before",
        lambda command, view: all(view.lease(lease_id) for lease_id in command.lease_ids),
    )
    assert found("passed for the claim of")


def found(*says: str) -> str:
    """Return the first promise that is seen to be broken."""
    return search.found(*says, seeds=range(100))


def history(seed: int) -> list[str]:
    """Everything that happens in a world, line by line."""
    lines: list[str] = []
    simulate(seed, trace=lines.append)
    return lines


def digest(seed: int) -> str:
    return sha256("\n".join(history(seed)).encode()).hexdigest()


def digest_in_a_process_of_its_own(hash_seed: str) -> str:
    script = "from tests.simulator.test_simulator import digest; print(digest(7))"
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": os.pathsep.join([".", *sys.path])}
    result = subprocess.run(
        [sys.executable, "-c", script], env=environment, check=True, capture_output=True, text=True
    )
    return result.stdout.strip()
