"""The chapter about work: messages in order, a consumer that dies, and one that goes on."""

from leasehold.cli.demo_parts.narration import Story
from leasehold.client.blocking.client import Client
from leasehold.errors import LeaseLost
from leasehold.work.consuming import Backoff, Message
from leasehold.work.law.answers import AcquireOutcome

_DOMAIN = "orders"
_MESSAGES = 6
_FAILS = 3


def process_in_order(story: Story, client: Client, number: int) -> None:
    """Let a consumer go on where another one has stopped, and fail once on the way."""
    story.heading(f"{number}. Messages are processed in order, and none twice")
    dead = client.work.try_acquire(_DOMAIN, 0, ttl=0.2)
    story.say(f"A consumer took message 0 under token {dead.token}, and says no more.")
    seen: list[tuple[int, int]] = []

    def handle(message: Message) -> None:
        seen.append((message.offset, message.attempt))
        if message.offset == _FAILS and message.attempt == 1:
            raise ConnectionError("no answer")

    source = [(_DOMAIN, offset, None) for offset in range(_MESSAGES)]
    progress = client.work.consume(handle, source=source, backoff=Backoff(first=0.05))
    began = ", ".join(f"{offset} (attempt {attempt})" for offset, attempt in seen)
    story.say(f"Another consumer waited for its time to be over, and began: {began}.")
    story.claim(
        "in order, and the one that failed was repeated before the next",
        [offset for offset, _ in seen] == [0, 1, 2, 3, 3, 4, 5] and progress.processed == _MESSAGES,
    )
    again = client.work.try_acquire(_DOMAIN, 2).outcome
    story.claim(f"what is done stays done: {again}", again is AcquireOutcome.ALREADY_PROCESSED)
    story.claim("the token of the dead consumer ends nothing", _is_refused(client, str(dead.token)))
    mark = client.work.watermark(_DOMAIN)
    story.claim(f"everything below {mark} can be committed upstream", mark == _MESSAGES)


def _is_refused(client: Client, token: str) -> bool:
    try:
        client.work.succeed(_DOMAIN, token)
    except LeaseLost:
        return True
    return False
