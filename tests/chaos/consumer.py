"""One of several processes that consume the same domains: `consumer.py STORE LOG DOMAINS MESSAGES NUMBER`.

It writes down each handler that it starts, in one piece.
"""

import os
import sys
from collections.abc import Iterator
from zlib import crc32

import leasehold
from leasehold.work.consuming import Backoff, Message

PROCESSES, WORKERS = 4, 25
MAX_RETRIES = 3
TTL = 2.0


def fails(domain: str, offset: int, attempt: int) -> bool:
    """Say whether an attempt is to fail: some do once, and few do always."""
    number = crc32(f"{domain} {offset}".encode()) % 1_000
    return number < 3 or (number < 40 and attempt == 1)


def main() -> None:
    store, log_path, domains, count, own = sys.argv[1], sys.argv[2], *map(int, sys.argv[3:6])
    log = os.open(log_path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def handle(message: Message) -> None:
        words = (message.domain, message.offset, message.token, message.attempt, os.getpid())
        os.write(log, (" ".join(map(str, words)) + "\n").encode())
        if fails(message.domain, message.offset, message.attempt):
            raise RuntimeError("as planned")

    with leasehold.connect(store, durability="fast") as client:
        # Each domain is given to two processes, so that they meet, and one can go on without the other.
        names = [
            f"d{number}" for number in range(domains) if number % PROCESSES in (own, (own + 1) % PROCESSES)
        ]
        begin = {name: client.work.watermark(name) for name in names}

        def source() -> Iterator[tuple[str, int, None]]:
            for offset in range(count):
                for name in names:
                    if offset >= begin[name]:
                        yield name, offset, None

        client.work.consume(
            handle,
            source=source(),
            concurrency=WORKERS,
            backoff=Backoff(first=0.01, most=0.05),
            ttl=TTL,
            max_retries=MAX_RETRIES,
        )


if __name__ == "__main__":
    main()
