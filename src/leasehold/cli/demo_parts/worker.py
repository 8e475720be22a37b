"""A process of the demo that wants the resource. Its arguments: the store, its name, the shelf, the TTL.

It says on stdout what happens to it, one JSON object per line, and does what it is told on stdin, one word
per line: `go`, `write`, `release`. It ends when its stdin does.
"""

import json
import select
import sys
from pathlib import Path

from leasehold.cli.demo_parts.shelf import Shelf, StaleToken
from leasehold.client.blocking.client import Client
from leasehold.client.blocking.lease import HeldLease
from leasehold.client.connect import connect
from leasehold.errors import Held, LeaseLost

RESOURCE = "report"
_ASK_AGAIN_SECONDS = 0.03


def main() -> None:
    """Play the part of one worker."""
    url, name, shelf_path, ttl = sys.argv[1:]
    shelf = Shelf(Path(shelf_path))
    with connect(url, holder=name) as client:
        _tell("ready")
        sys.stdin.readline()
        lease = _acquire(client, float(ttl))
        if lease is None:
            return
        shelf.put(f"written by {name}", token=lease.token)
        _tell("acquired", token=lease.token, lease_id=lease.lease_id)
        for line in sys.stdin:
            if line.strip() == "write":
                _write_blindly(shelf, name, lease)
            else:
                lease.release()
                _tell("released")


def _acquire(client: Client, ttl: float) -> HeldLease | None:
    """Ask until the resource is ours; None if nobody wants that any more."""
    told = False
    while True:
        try:
            return client.acquire(RESOURCE, ttl=ttl)
        except Held as error:
            if not told:
                _tell("refused", holder=error.holder, expires_in=error.expires_in)
                told = True
        if select.select([sys.stdin], [], [], _ASK_AGAIN_SECONDS)[0]:
            return None


def _write_blindly(shelf: Shelf, name: str, lease: HeldLease) -> None:
    """Write without looking at the clock first, as a program does that was paused between look and write."""
    try:
        shelf.put(f"overwritten by {name}", token=lease.token)
    except StaleToken as error:
        _tell("write refused", token=lease.token, highest=error.highest)
    else:
        _tell("wrote", token=lease.token)
    try:
        lease.ensure()
    except LeaseLost as error:
        _tell("lost", code=error.code)
    else:
        _tell("still holds")


def _tell(event: str, **facts: object) -> None:
    print(json.dumps({"event": event, **facts}), flush=True)


if __name__ == "__main__":
    main()
