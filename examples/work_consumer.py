"""Process the messages of several accounts: in order within each, side by side otherwise, and none twice.

    python examples/work_consumer.py STORE

Run it several times at once, kill one, run it again: every message is processed once, and the balances are
right. The bank stands for a resource that checks fencing tokens, as yours should.
"""

import sys
from collections.abc import Iterator

import leasehold
from leasehold.work.consuming import Backoff, Message

ACCOUNTS = ("ann", "bob", "cy")


class Bank:
    """Keeps balances, and refuses whoever comes with a lower token than somebody before."""

    def __init__(self) -> None:
        self.balances = dict.fromkeys(ACCOUNTS, 0)
        self._highest = dict.fromkeys(ACCOUNTS, 0)

    def book(self, account: str, amount: int, fence: int) -> None:
        if fence < self._highest[account]:
            raise PermissionError(f"token {fence} is overtaken")
        self._highest[account] = fence
        self.balances[account] += amount


def messages() -> Iterator[tuple[str, int, int]]:
    """Yield what a queue or a log would: account, offset and amount."""
    for offset in range(10):
        for account in ACCOUNTS:
            yield account, offset, offset + 1


def main(url: str) -> dict[str, int]:
    """Consume everything, and return the balances."""
    bank = Bank()

    def book(message: Message) -> None:
        if message.offset == 3 and message.attempt == 1:
            raise ConnectionError("the bank does not answer")  # It is tried again, before anything after it.
        bank.book(message.domain, message.payload, message.fence)

    with leasehold.connect(url) as leases:
        progress = leases.work.consume(
            book, source=messages(), concurrency=3, backoff=Backoff(first=0.01), ttl=30
        )
        for account in ACCOUNTS:
            print(f"{account}: {bank.balances[account]}, commit up to {leases.work.watermark(account)}")
        print(f"processed {progress.processed}, retried {progress.retried}, failed {progress.failed}")
    return bank.balances


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "memory:")
