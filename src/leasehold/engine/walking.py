"""A walk along the ledger that believes nothing it has not checked.

Each entry must follow the one before, match its hash, decode, be something the law could have produced, have
indexed columns that match it, and be covered by the seal of a key that was admitted when the commit
began. The walk stops at the first entry that is not, and says which and why.

Not found by a walk alone: a ledger that was cut off at its end, or rewritten from its first entry on with
keys of somebody's own. A head, or the name of the first key, kept elsewhere finds those.

Of entries that were pruned nothing is left to check: the walk starts from what a checkpoint says of them.
"""

from collections.abc import Callable, Iterable

from leasehold.engine.beginning import find_beginning
from leasehold.engine.port import Head, LedgerRow, Progress, Snapshot
from leasehold.engine.sealing import is_sealed, sealed_by
from leasehold.engine.signing import is_signed, key_id_of
from leasehold.kernel.ledger.chain import BrokenChain, link
from leasehold.kernel.ledger.events import (
    DecodeError,
    Event,
    IllegalTransition,
    KeyEnrolled,
    KeyVouched,
    StoreCheckpointed,
)
from leasehold.kernel.ledger.family import Families
from leasehold.kernel.ledger.keys import voucher_message
from leasehold.kernel.ledger.state import Folding, State

_PAGE = 1_000


class Walk:
    """How far the ledger has been checked, and the state that it describes up to there."""

    def __init__(self, families: Families, expected: Head | None = None) -> None:
        self._families = families
        self._folding = Folding(families)
        self._expected = expected
        self.head = Head()
        self.sealed = 0
        """The last entry that a seal covers."""
        self.unsealed_before = 0
        """The last entry from before there were seals."""
        self.enrolled_at: dict[bytes, int] = {}
        """Which entry enrolled each key."""
        self._sealers: dict[str, bytes] = {}
        """The keys that were admitted when the present commit began, by name."""
        self._key_changes = 0
        self._counters: list[int | None] = []
        """What the rows of the present commit say of how many tokens were given out."""
        self.began: Head | None = None
        """The last entry that was pruned; position 0 if none was, and None before the walk has begun."""
        self._vouching = 0
        """Which entry vouches for the state that the walk began with, if any does."""
        self._newest_checkpoint = 0

    @property
    def state(self) -> State:
        """Return what the ledger describes up to here."""
        return self._folding.state

    def begin(self, snapshot: Snapshot) -> None:
        """Start with the ledger's first entry, or with what stands for those that were pruned."""
        beginning = find_beginning(snapshot)
        self.head = self.began = beginning.head
        self._folding, self._vouching = Folding(self._families, beginning.state), beginning.checkpoint
        self.enrolled_at = dict.fromkeys(self.state.keys, self.head.position)
        self.sealed = self.head.position
        self._note_sealers()
        expected = self._expected
        if expected is None or expected.position > self.head.position:
            return
        if expected.position < self.head.position:
            raise BrokenChain(
                expected.position,
                f"was pruned with all up to {self.head.position}, so the head that was kept can no longer be "
                "compared with anything; keep a newer one",
            )
        if expected.hash != self.head.hash:
            raise BrokenChain(expected.position, "is another than the head that was kept says")

    def go(self, snapshot: Snapshot, progress: Progress | None = None, *, until: int | None = None) -> None:
        """Walk to the end of the ledger, or to a place on the way; raise BrokenChain at what is not right."""
        if self.began is None:
            self.begin(snapshot)
        total = snapshot.head.position
        limit = _PAGE
        while until is None or self.head.position < until:
            if until is not None:
                limit = min(limit, until - self.head.position)
            try:
                page = snapshot.rows(self.head.position, limit)
            except ValueError as error:  # bytes in a column that are no text
                if limit == 1:
                    raise BrokenChain(self.head.position + 1, f"cannot be read: {error}") from error
                limit = 1  # One unreadable row hides its whole page: go on singly, to find out which it is.
                continue
            if not page:
                break
            self._check_page(page, snapshot.filing)
            if progress is not None and len(page) == _PAGE:
                progress(self.head.position, total)
        if until is None:
            self._check_end()

    def stand_on(self, checkpoint: int) -> None:
        """Take note that the state which is kept has changed: an entry that comes next vouches for it."""
        self._vouching = checkpoint

    def _check_end(self) -> None:
        if self._newest_checkpoint != self._vouching:
            raise BrokenChain(
                self._newest_checkpoint or self._vouching,
                "is a checkpoint whose state is not the one that is kept",
            )
        if self._expected is not None and self._expected.position > self.head.position:
            raise BrokenChain(self.head.position + 1, "is missing: the head that was kept lies beyond it")
        if self._sealers and self.sealed < self.head.position:
            raise BrokenChain(self.sealed + 1, "is not sealed, and neither is any after it")

    def _check_page(self, page: Iterable[LedgerRow], filing: Callable[[Event], tuple[object, ...]]) -> None:
        """Check rows. A tight loop: a long history has millions."""
        apply, decode = self._folding.apply, self._families.decode_event
        note_counter, expected = self._counters.append, self._expected
        position, previous = self.head.position, self.head.hash
        try:
            for row in page:
                place, body, claimed, seal, counter = row[:5]
                if place != position + 1:
                    raise BrokenChain(position + 1, f"is missing: {place} follows {position}")
                if link(previous, place, body) != claimed:
                    raise BrokenChain(place, "its hash does not match its content")
                try:
                    event = decode(body)
                except DecodeError as error:
                    raise BrokenChain(
                        place, f"is not an event that this version understands: {error}"
                    ) from error
                if row[5:] != filing(event):
                    raise BrokenChain(place, "its indexed columns do not match the signed entry")
                try:
                    apply(event)
                except (IllegalTransition, ValueError) as error:
                    raise BrokenChain(place, str(error)) from error
                if event.is_own:
                    self._check_own(place, event)
                note_counter(counter)
                if seal is not None:
                    self._check_seal(place, claimed, seal)
                if expected is not None and place == expected.position and claimed != expected.hash:
                    raise BrokenChain(place, "is another than the head that was kept says")
                position, previous = place, claimed
        finally:
            self.head = Head(position=position, hash=previous)

    def _check_own(self, place: int, event: Event) -> None:
        for public_key in self.state.keys.keys() - self.enrolled_at.keys():
            self.enrolled_at[public_key] = place
        if (
            isinstance(event, KeyEnrolled | KeyVouched)
            and event.vouched_by
            and not is_signed(event.vouched_by, voucher_message(event.public_key), event.voucher)
        ):
            raise BrokenChain(place, "the signature that vouches for its key is not right")
        if isinstance(event, StoreCheckpointed):
            self._newest_checkpoint = place

    def _check_seal(self, place: int, entry_hash: bytes, seal: bytes) -> None:
        key_id = sealed_by(seal)
        public_key = self._sealers.get(key_id) or self._enrolled_itself(key_id)
        if public_key is None:
            raise BrokenChain(place, f"is sealed with {key_id}, which was not admitted then")
        for first in self._firsts(public_key):
            if is_sealed(seal, public_key, first, place, entry_hash):
                break
        else:
            raise BrokenChain(place, f"its seal with {key_id} is not right")
        self._check_counters(place)
        if not self._sealers:
            self.unsealed_before = first - 1
        self.sealed = place
        self._note_sealers()

    def _note_sealers(self) -> None:
        """Note which keys may seal the next commit, if that has changed."""
        authority = self.state.authority
        if authority is not None and authority.key_changes != self._key_changes:
            self._key_changes = authority.key_changes
            admitted = (key.public_key for key in self.state.keys.values() if key.is_admitted)
            self._sealers = {key_id_of(public_key): public_key for public_key in admitted}

    def _enrolled_itself(self, key_id: str) -> bytes | None:
        """Return a key that seals the very commit that enrols it: it must have enrolled itself."""
        for public_key, place in self.enrolled_at.items():
            if place > self.sealed and key_id_of(public_key) == key_id:
                return None if self.state.keys[public_key].vouched_by else public_key
        return None

    def _firsts(self, public_key: bytes) -> Iterable[int]:
        """Return where the commit can have begun: behind the last seal.

        The first seal of a ledger from before there were seals begins with the key's enrolment, or with the
        new epoch right before that.
        """
        if self._sealers:
            return (self.sealed + 1,)
        enrolled = self.enrolled_at[public_key]
        return (enrolled, max(1, enrolled - 1))

    def _check_counters(self, place: int) -> None:
        """Every row of a commit tells how many tokens of its epoch were given out at its end."""
        counter = None if self.state.authority is None else self.state.authority.counter
        ours = self._counters if self._sealers else self._counters[-1:]
        for first, one in enumerate(ours, place - len(ours) + 1):
            if one is not None and one != counter:
                raise BrokenChain(first, "it is filed with another counter than its commit had")
        del self._counters[:]
