"""Process the messages of several accounts: in order within each, side by side otherwise, and none twice.

    python examples/work_consumer.py STORE

Run it several times at once, kill one, run it again: every message is booked once, and the balances are
right. The bank, a file beside the store, stands for a resource that checks fencing tokens, as yours should.
It also knows what it has booked last: a consumer that is killed between booking and saying so leaves its
message to the next one.
"""

import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing

import leasehold
from leasehold.work.consuming import Backoff, Message

ACCOUNTS = ("ann", "bob", "cy")


class Bank:
    """Keeps balances, books nothing twice, and refuses whoever has a lower token than somebody before."""

    def __init__(self, path: str) -> None:
        self._path = path
        with closing(self._open()) as file:
            file.execute(
                "CREATE TABLE IF NOT EXISTS account"
                " (name TEXT PRIMARY KEY, balance INTEGER, last INTEGER, token INTEGER)"
            )
            for account in ACCOUNTS:
                file.execute("INSERT OR IGNORE INTO account VALUES (?, 0, -1, 0)", (account,))

    def _open(self) -> sqlite3.Connection:
        return sqlite3.connect(self._path, timeout=30, isolation_level=None)

    def book(self, account: str, offset: int, amount: int, token: int) -> None:
        with closing(self._open()) as file:
            taken = file.execute(
                "UPDATE account SET token = ?2 WHERE name = ?1 AND token <= ?2", (account, token)
            )
            if taken.rowcount == 0:
                raise PermissionError(f"token {token} is overtaken")
            file.execute(
                "UPDATE account SET balance = balance + ?3, last = ?4"
                " WHERE name = ?1 AND token = ?2 AND last < ?4",
                (account, token, amount, offset),
            )

    def balance(self, account: str) -> int:
        with closing(self._open()) as file:
            (balance,) = file.execute("SELECT balance FROM account WHERE name = ?", (account,)).fetchone()
            return int(balance)


def messages() -> Iterator[tuple[str, int, int]]:
    """Yield what a queue or a log would: account, offset and amount."""
    for offset in range(10):
        for account in ACCOUNTS:
            yield account, offset, offset + 1


def main(store: str) -> None:
    """Consume everything, and print the balances."""
    bank = Bank(f"{store}.bank")

    def book(message: Message) -> None:
        if message.offset == 3 and message.attempt == 1:
            raise ConnectionError("the bank does not answer")  # It is tried again, before anything after it.
        bank.book(message.domain, message.offset, message.payload, message.fence)

    with leasehold.connect(store) as leases:
        progress = leases.work.consume(
            book, source=messages(), concurrency=3, backoff=Backoff(first=0.01), ttl=30
        )
        for account in ACCOUNTS:
            print(f"{account}: {bank.balance(account)}, commit up to {leases.work.watermark(account)}")
        print(f"processed {progress.processed}, retried {progress.retried}, failed {progress.failed}")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python examples/work_consumer.py STORE")
    main(sys.argv[1])
