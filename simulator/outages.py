"""Times in which no engine is there.

They all stop, for longer than some leases last, so that nobody can renew. One of them comes back, and says so
before it serves anybody; then the others are there again, too.
"""

from leasehold.engine.port import Conflict
from leasehold.engine.recording import resume
from leasehold.errors import StoreError
from simulator.engine import SimulatedEngine
from simulator.plan import Outage
from simulator.stage import Stage
from simulator.store import SimulatedStore
from simulator.witness import Witness


class Outages:
    """Stops the engines now and then."""

    def __init__(
        self, stage: Stage, witness: Witness, engines: list[SimulatedEngine], store: SimulatedStore
    ) -> None:
        self._stage = stage
        self._witness = witness
        self._engines = engines
        self._store = store
        self._running = 0
        """How many outages there are at the moment."""

    def start(self) -> None:
        """Plan when the engines are down."""
        for outage in self._stage.plan.outages:
            when_ns = int(self._stage.plan.horizon_ns * outage.begins)
            self._stage.after(when_ns, lambda outage=outage: self._stop(outage))  # type: ignore[misc]

    def _stop(self, outage: Outage) -> None:
        self._stage.say("outage: all engines are down")
        self._stage.tally.note("registrar was down")
        self._running += 1
        for engine in self._engines:
            engine.stop()
        self._stage.after(outage.lasts_ns, lambda: self._resume(outage))

    def _resume(self, outage: Outage) -> None:
        self._running -= 1
        if self._running:
            return
        while True:
            self._store.begin_batch()
            try:
                resumed = resume(self._store, longest_ns=outage.settles_ns)
                break
            except (Conflict, StoreError):
                self._stage.check()  # What asks for a registrar to start tries until one does.
        self._stage.check()
        settles_ns = min(outage.settles_ns, self._witness.truth.settling.longest_ns())
        said_ns = 0 if resumed is None else resumed.settles_until - resumed.tick.value
        if said_ns != settles_ns:
            self._stage.violate("an outage settles for {} ns, and should for {}", said_ns, settles_ns)
        self._stage.say("outage: the registrar is back: {}", resumed)
        for engine in self._engines:
            engine.start()
