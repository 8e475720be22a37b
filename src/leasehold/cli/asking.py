"""What a user asks for when a lease is to be taken, on one resource or on several, and asking for it.

Several are one claim: all of them are granted in one commit, or none is.
"""

import argparse
import math
import shlex
from argparse import Namespace
from typing import TYPE_CHECKING, Any

from leasehold.cli.durations import parse_duration
from leasehold.cli.naming import displayed, resource
from leasehold.cli.parser import UsageError
from leasehold.cli.waiting import explained
from leasehold.errors import Held

_TTL_SECONDS = 60.0

if TYPE_CHECKING:
    from collections.abc import Sequence

    from leasehold.client.blocking.block import Block
    from leasehold.client.blocking.client import Client


def add_claim_options(parser: argparse.ArgumentParser) -> None:
    """Add what can be said about a claim, whoever will hold it."""
    parser.add_argument(
        "resources",
        metavar="RESOURCE",
        nargs="+",
        action=_Resources,
        help="what to own: any name, or a path if it has a / or begins with a dot, unless name: is in front; "
        "of several all, or none",
    )
    parser.add_argument(
        "--ttl",
        type=parse_duration,
        metavar="TIME",
        help="how long the lease lasts unless renewed: 90, 90s, 5m, 1h30m, 500ms "
        "(default: 60s; for a path the setting default_ttl_seconds)",
    )
    modes = parser.add_mutually_exclusive_group()
    modes.add_argument(
        "--mode",
        choices=("exclusive", "shared"),
        type=str.lower,
        default="exclusive",
        help="alone, or together with others who only share it (default: %(default)s)",
    )
    modes.add_argument(
        "--shared", dest="mode", action="store_const", const="shared", help="the same as --mode shared"
    )
    add_wait_option(parser)
    parser.add_argument(
        "--reason", default="", metavar="TEXT", help="what it is for; whoever is refused sees it"
    )
    parser.add_argument(
        "--priority",
        type=int,
        default=5,
        metavar="N",
        help="from 1 to 10, the most urgent: whose turn comes first while waiting (default: 5)",
    )
    parser.add_argument(
        "--lock-delay",
        type=parse_duration,
        default=0.0,
        metavar="TIME",
        help="keep others out for this long after the lease has expired or was revoked",
    )
    parser.add_argument(
        "--metadata",
        metavar="KEY=VALUE",
        action="extend",
        nargs="+",
        default=[],
        help="facts to keep with the lease, such as why=deploy",
    )


class _Resources(argparse.Action):
    """Keeps what the arguments mean as `resources`, and how they were typed as `typed`."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: Namespace,
        values: "str | Sequence[Any] | None",
        option_string: str | None = None,
    ) -> None:
        namespace.typed = list(values or ())
        try:
            namespace.resources = [resource(text) for text in namespace.typed]
        except argparse.ArgumentTypeError as error:
            raise argparse.ArgumentError(self, str(error)) from None


def add_wait_option(parser: argparse.ArgumentParser) -> None:
    """Let the user wait in line for what others hold."""
    parser.add_argument(
        "--wait",
        type=_patience,
        default=0.0,
        metavar="TIME",
        help="wait up to TIME, or `forever` (default: do not wait)",
    )


def _patience(text: str) -> float:
    return math.inf if text.lower() == "forever" else parse_duration(text)


def refuse_nonsense(arguments: Namespace) -> None:
    """Refuse a claim that can never be right, before anything is opened or started."""
    seen: set[str] = set()
    for name in arguments.resources:
        if name in seen:
            raise UsageError(f"{displayed(name)!r} is named twice; name each resource once")
        seen.add(name)
    _metadata_of(arguments)


def _metadata_of(arguments: Namespace) -> dict[str, Any]:
    pairs: dict[str, Any] = {}
    for pair in arguments.metadata:
        key, separator, value = pair.partition("=")
        if not key or not separator:
            raise UsageError(f"--metadata takes KEY=VALUE, not {pair!r}; give RESOURCE before --metadata")
        if key in pairs:
            raise UsageError(f"--metadata has {key!r} twice; give each key once")
        pairs[key] = value
    return pairs


def ask(
    client: "Client", arguments: Namespace, *, only_for_one: dict[str, Any] | None = None, **others: Any
) -> "Block":
    """Acquire what the user asks for: all of it, or nothing.

    `others` are arguments of `acquire` and `acquire_all` that the user does not give; `only_for_one` are
    those that only `acquire` has. Who waits at a terminal is told for whom.
    """
    with explained(client, arguments):
        return _ask(client, arguments, only_for_one or {}, others)


def _ask(client: "Client", arguments: Namespace, special: dict[str, Any], others: dict[str, Any]) -> "Block":
    claim: dict[str, Any] = {
        "ttl": arguments.ttl,
        "mode": arguments.mode,
        "metadata": _metadata_of(arguments),
        "reason": arguments.reason,
        "wait": arguments.wait,
        "priority": arguments.priority,
        "lock_delay": arguments.lock_delay,
        **others,
    }
    if any(name.startswith("/") for name in arguments.resources) and not any(
        special.get(name) for name in ("adopt", "scope", "budget")
    ):
        return _ask_for_files(client, arguments, special, claim)
    if arguments.ttl is None:
        claim["ttl"] = _TTL_SECONDS
    if len(arguments.resources) > 1:
        return client.acquire_all(arguments.resources, **claim)
    return client.acquire(arguments.resources[0], **claim, **special)


def _ask_for_files(
    client: "Client", arguments: Namespace, special: dict[str, Any], claim: dict[str, Any]
) -> "Block":
    """Acquire files, and renew what the holder has already; who is refused is told what to do next."""
    from leasehold.files.names import FileName

    names = [FileName(resource, resource) for resource in arguments.resources]
    limit = special.get("max_renewals", -1)
    claim |= {"wait": arguments.wait or False, "max_renewals": None if limit == -1 else limit}
    try:
        return client.files.lease(*names, agent=client.holder, **claim)
    except Held as error:
        raise _with_all_that_was_typed(error, arguments) from None


def _with_all_that_was_typed(error: Held, arguments: Namespace) -> Held:
    """Return a refusal whose next command asks for the same, of the same store, in the same way."""
    command = error.facts.get("next_command")
    if not isinstance(command, str):
        return error
    given = {
        "--store": arguments.store,
        "--tenant": arguments.tenant,
        "--ttl": None if arguments.ttl is None else f"{arguments.ttl:g}s",
        "--reason": arguments.reason or None,
    }
    options = [word for pair in given.items() if pair[1] is not None for word in pair]
    child = ["--", *arguments.child] if arguments.child else []
    words = [*shlex.split(command), *options, *child]
    words[1] = arguments.command
    again = shlex.join(words)
    return type(error)(str(error).replace(command, again), **error.facts | {"next_command": again})
