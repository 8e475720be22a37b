"""What is being decided: a view, the moment, and the events so far.

A rule reads records from the draft and appends events to it. An appended event evolves its records at once,
so every later read sees them, and it never changes any more. What an event brings about comes in three stages
(`family.Stage`): with the event itself; then, in this and in other families; and once none of that is left,
whoever is entitled gets what has become free. Then and free are first in, first out, never recursive, and run
after the rule, or where it calls `settle`.

A refusal, or a record that nobody has loaded, undoes everything that the command has appended.
"""

from collections import deque
from collections.abc import Sequence
from typing import Any

from leasehold.kernel.ledger.authority import carry_over, go_on
from leasehold.kernel.ledger.commands import LOCAL, Caller, Command
from leasehold.kernel.ledger.events import Event
from leasehold.kernel.ledger.family import Family, Reaction, Stage
from leasehold.kernel.ledger.records import EVERYTHING, Gathering
from leasehold.kernel.ledger.refusals import Refusal
from leasehold.kernel.ledger.tick import Now, Tick
from leasehold.kernel.ledger.view import View


class Draft:
    """The events of one command after another, on one view and at one moment."""

    def __init__(self, view: View, now: Now) -> None:
        self.view = view
        self.now = now
        """The moment of the present batch."""
        self.caller: Caller = LOCAL
        """Who asks for what is being decided."""
        self.events: list[Event] = []
        """What the present command has appended."""
        self.wakes: list[str] = []
        """Where waiters are to be woken, once it is committed, because their situation has changed."""
        self._authority = view.authority
        self._then: deque[tuple[Reaction, Event]] = deque()
        self._free: deque[tuple[Reaction, Event]] = deque()
        self._aging: set[tuple[str, str]] = set()

    def begin(self, caller: Caller = LOCAL) -> None:
        """Let what was appended stand, and begin with the next command."""
        self.caller = caller
        self.events, self.wakes = [], []
        self._authority = self.view.authority
        self.view.journal.steps.clear()

    def undo(self) -> None:
        """Take everything back that the present command has appended."""
        self.view.journal.undo()
        self.view.authority = self._authority
        self.events, self.wakes = [], []
        self._then.clear()
        self._free.clear()
        self._aging.clear()

    def get(self, family: str, key: str) -> Any:
        """Return a record as it is now, or None if there is none. What time has done to it is appended."""
        part, kind = self.view.parts[family], self.view.families.named[family]
        record = part.get(key)
        if record is None or not self.is_stale(kind, record) or (family, key) in self._aging:
            return record
        self._aging.add((family, key))
        kind.age(key, record, self)
        self._aging.discard((family, key))
        return part.get(key)

    def scan(
        self, family: str, low: str, high: str, limit: int = EVERYTHING, *, reverse: bool = False
    ) -> list[Any]:
        """Return the first records of a range by key, or the last ones, as they are now.

        Of a family that is kept as documents; others are asked in the ways of their own part of the view.
        """
        part = self.view.parts[family]
        while True:
            known = len(self.events)
            keys = part.scan(low, high, limit, reverse=reverse)
            records = [self.get(family, key) for key in keys]
            if len(self.events) == known:  # Else time has changed what there is.
                return records

    def count(self, family: str, low: str, high: str) -> int:
        """Return how many records there are in a range by key, whatever time has done to them."""
        number: int = self.view.parts[family].count(low, high)
        return number

    def is_stale(self, family: Family, record: Any) -> bool:
        """Say whether time, or what became of others, may have done something to a record."""
        due, now = family.due(record), self.now.tick
        if due is None:
            return False
        return (due.era, due.value) <= (now.era, now.value) or family.depends(record)

    def carried(self, tick: Tick) -> Tick | None:
        """Return when something that was due in an earlier era is due now; None if nobody can tell."""
        return carry_over(tick, self.view.authority, self.view.eras_since(tick))

    def remembered(self, command: Command) -> Event | None:
        """Return what a command has caused that was sent before, as long as requests are remembered."""
        return self.view.recalled(command.request_key, self.now)

    def next_number(self) -> int:
        """Return the number, from the store's counter, that the next event that draws one gets."""
        return self.view.authority.next_token()

    def append(self, event: Event) -> None:
        """Let something happen."""
        family = self.view.families.of_event[type(event)]
        part = self.view.parts[family.name]
        before = {}
        gathering = Gathering()
        # All of them first: what is lacking is read at once, and nothing is half done.
        for key in event.keys:
            with gathering.step():
                before[key] = part.get(key)
        gathering.end()
        for key, record in before.items():
            part.put(key, family.evolve(record, event, key))
        self.took((event,))

    def took(self, events: Sequence[Event], wakes: Sequence[str] = (), *, promoted: bool = False) -> None:
        """Take note of events whose records are in the view. `promoted`: those who wait have been seen to."""
        self.events += events
        self.wakes += wakes
        view = self.view
        for event in events:  # All of them first: a reaction may draw a number behind theirs.
            view.authority = go_on(view.authority, event)
            if event.is_remembered and event.request is not None:
                view.remember(event)
        reactions = view.families.reactions
        for event in events:
            for reaction in reactions.get(type(event), ()):
                if reaction.stage is Stage.WITH:
                    reaction.react(event, self)
                elif reaction.stage is Stage.THEN:
                    self._then.append((reaction, event))
                elif not promoted:
                    self._free.append((reaction, event))

    def settle(self) -> None:
        """Let everything follow that the events so far bring about."""
        while self._then or self._free:
            if self._then or len(self._free) == 1:
                reaction, event = (self._then or self._free).popleft()
                reaction.react(event, self)
            else:
                self._settle_many()

    def _settle_many(self) -> None:
        """Serve several in one go, so that what is lacking for all of them is read at once."""
        gathering = Gathering()
        while self._then or self._free:
            reaction, event = (self._then or self._free).popleft()
            try:
                with gathering.step():
                    reaction.react(event, self)
            except Exception:
                # Where something was lacking before, this is decided again, on what is there then.
                gathering.end()
                raise
        gathering.end()

    def call(self, command: Command) -> Any:
        """Have a command of any family decided as a part of this one, which is refused or undone with it.

        Who calls names the request after its own, because that is the one that is remembered.
        """
        families = self.view.families
        authority, events, wakes = self.view.authority, len(self.events), len(self.wakes)
        steps, queues = len(self.view.journal.steps), (deque(self._then), deque(self._free))
        made = families.check(command) or families.rules[type(command)](command, self)
        if isinstance(made, Refusal):  # Whatever becomes of the whole, a refused part of it changes nothing.
            self.view.journal.undo(steps)
            self.view.authority = authority
            del self.events[events:], self.wakes[wakes:]
            self._then, self._free = queues
        return made
