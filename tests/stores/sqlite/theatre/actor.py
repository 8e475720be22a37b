"""A process that uses a store as any program does, one step at a time, and tells what came of each.

An answer is a value, or an error of ours by its code, or a crash: any other exception, which no test accepts.
"""

import json
import os
import random
import socket
import time
import traceback
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import leasehold
from leasehold.engine.port import EntryQuery
from leasehold.errors import LeaseholdError
from leasehold.kernel.lease.events import LeaseIssued
from leasehold.kernel.ledger.events import EpochRaised
from leasehold.stores.sqlite.backup import backup, restore
from tests.engine.doubles import registrar_of

_TTL_SECONDS = 3600
"""So long that nothing expires and no keeper renews while a test looks."""


class Actor:
    """One user of a store. Every method is a step that it can be told to take."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._client: Any = None
        self._leases: dict[str, Any] = {}
        self._transaction = ExitStack()

    def connect(self, place: str, **options: Any) -> None:
        self._client = leasehold.connect(place, holder=self._name, **options)

    def acquire(self, resource: str) -> dict[str, Any]:
        lease = self._leases[resource] = self._client.acquire(resource, ttl=_TTL_SECONDS)
        return {"token": lease.token, "lease_id": lease.lease_id}

    def renew(self, resource: str) -> None:
        self._leases[resource].renew()

    def ensure(self, resource: str) -> None:
        self._leases[resource].ensure()

    def release(self, resource: str) -> None:
        self._leases.pop(resource).release()

    def detach(self, resource: str) -> None:
        self._leases.pop(resource).detach()

    def hammer(self, place: str, diary: str, end: str) -> None:
        """Hold and release as fast as can be until the end is there; whoever is refused connects again.

        What comes of each try goes into the diary, a named pipe, at once: its moment, resource and token (0
        for none). Who dies tells no more.
        """
        chance = random.Random(self._name)
        with Path(diary).open("w", buffering=1) as lines:
            while not Path(end).exists():
                door, granted = chance.randrange(3), 0
                with suppress(LeaseholdError):
                    if self._client is None:
                        self.connect(place)
                    granted = self.acquire(f"door {door}")["token"]
                lines.write(f"{time.monotonic_ns()} {door} {granted}\n")
                with suppress(LeaseholdError):
                    if granted:
                        self.release(f"door {door}")
                        continue
                with suppress(LeaseholdError):
                    self.close()

    def begin_to_write(self) -> None:
        """Be in the middle of a write transaction."""
        self._transaction.enter_context(self._store.write())

    def end_writing(self) -> None:
        self._transaction.close()

    def facts(self) -> dict[str, Any]:
        """What the store says of its history."""
        with self._store.snapshot() as snapshot:
            entries = snapshot.entries(EntryQuery(limit=1_000_000))
            identity = snapshot.authority.identity
        raises = [entry.event for entry in entries if isinstance(entry.event, EpochRaised)]
        return {
            "identity": identity,
            "raises": [(event.epoch, event.reason) for event in raises],
            "entries": [entry.hash.hex() for entry in entries],
            "tokens": [event.token for entry in entries if isinstance(event := entry.event, LeaseIssued)],
        }

    def verify(self) -> list[str]:
        return list(self._client.verify().problems)

    def become(self, user: int, group: int) -> None:
        """Be somebody else from now on, who has no more rights than anybody."""
        os.setgroups([])
        os.setgid(group)
        os.setuid(user)

    def link(self, target: str, name: str) -> None:
        """Put a symbolic link in the place of a file."""
        os.unlink(name)
        os.symlink(target, name)

    def read(self, file: str) -> str | None:
        """Read a file that may be somebody else's."""
        try:
            return Path(file).read_text()
        except PermissionError:
            return None

    def backup(self, place: str, file: str) -> None:
        backup(place, file)

    def restore(self, file: str, place: str) -> int:
        return restore(file, place).epoch

    def close(self) -> None:
        """Go home, and leave what is held to whoever finds it."""
        self._transaction.close()
        client, self._client = self._client, None
        for lease in self._leases.values():
            lease.detach()
        self._leases.clear()
        if client is not None:
            client.close()

    @property
    def _store(self) -> Any:
        return registrar_of(self._client).store


def act(name: str, director: socket.socket) -> None:
    """Take the steps that one is told to take, until there are no more."""
    actor = Actor(name)
    with director.makefile("rw") as pipe:
        for line in pipe:
            step = json.loads(line)
            pipe.write(json.dumps(_answer(actor, step["step"], step["with"])) + "\n")
            pipe.flush()


def _answer(actor: Actor, step: str, details: dict[str, Any]) -> dict[str, Any]:
    try:
        return {"value": getattr(actor, step)(**details)}
    except LeaseholdError as error:
        return {"error": error.code, "message": str(error)}
    except Exception:
        return {"crash": traceback.format_exc()}
