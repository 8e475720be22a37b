"""The errors page: every exception, its stable code, and what it means to programs and to people."""

import importlib
import pkgutil
from collections.abc import Iterator
from typing import TypeVar

import leasehold.cli
from leasehold import errors
from leasehold.access import errors as access_errors
from leasehold.certificates.errors import NotProven
from leasehold.errors import LeaseholdError, StoreError
from tools.reference.source import class_node, docstring, fields
from tools.reference.words import meaning_of
from tools.reference.writing import name, page, table

_Kind = TypeVar("_Kind", bound=LeaseholdError)

_INTRODUCTION = """\
Everything that leasehold raises is a `LeaseholdError`, and can be imported from `leasehold`. Each exception
has a `code` that is never renamed or given another meaning, an HTTP status for services that pass it on, and
the exit code with which the command line ends. The message says what happened and what to do next. Those of
workflows are on [a page of their own](workflows.md#exceptions)."""

HEADINGS = ("exception", "is a", "code", "HTTP", "exit", "meaning")


def _is_of_access(kind: type[LeaseholdError]) -> bool:
    return kind.__module__ == access_errors.__name__


def errors_page() -> str:
    """Return the page."""
    ours = [kind for kind in _tree(LeaseholdError) if kind.__module__ == errors.__name__]
    return page(
        "Errors",
        _INTRODUCTION,
        table(HEADINGS, [error_row(kind) for kind in ours]),
        "## Facts",
        "What is known about a problem is in `error.facts`, by name, and as an attribute of the error; one "
        "that does not apply is `None`.",
        table(
            ["fact", "type", "meaning"],
            [
                (name(field.name), name(field.annotation.removesuffix(" | None")), meaning_of(field))
                for field in fields(LeaseholdError)
                if field.default == "None"
            ],
        ),
        "## When a lease is not proven",
        "`verify_certificate` and the enforcers raise these. All are in `leasehold.certificates.errors`; "
        "`NotProven` and `StaleToken` can be imported from `leasehold`.",
        table(HEADINGS, [error_row(kind) for kind in _tree(NotProven)]),
        "## About access keys",
        "All can be imported from `leasehold.access`.",
        table(HEADINGS, [error_row(kind) for kind in _tree(LeaseholdError) if _is_of_access(kind)]),
        "## When the outcome is unknown",
        _unknown(),
        "## From the command line only",
        "These never reach a program that uses the library. With `--json` they look like all others.",
        table(
            ["exception", "code", "exit", "meaning"],
            [
                (name(kind.__name__), name(kind.code), str(kind.exit_code), docstring(class_node(kind)))
                for kind in _cli_errors()
            ],
        ),
    )


def error_row(kind: type[LeaseholdError]) -> tuple[str, ...]:
    parents = [name(base.__name__) for base in kind.__bases__]
    text = docstring(class_node(kind))
    return (
        name(kind.__name__),
        ", ".join(parents),
        name(kind.code),
        str(kind.http_status),
        str(kind.exit_code),
        text,
    )


def _unknown() -> str:
    unknown = [name(kind.__name__) for kind in _tree(StoreError) if kind.outcome_unknown]
    return (
        f"`StoreError` has `outcome_unknown`. It is true for {', '.join(unknown)}: the change may have been "
        "made all the same. The client asks again by itself, with the same request id, before it raises. "
        "Then `error.request_id` is the id to ask with later: see "
        "[recover a lost reply](../how-to/recover-a-lost-reply.md). After any other error of the store "
        "nothing was changed."
    )


def _tree(root: type[_Kind]) -> Iterator[type[_Kind]]:
    """Yield a class and everything below it, each branch whole before the next, as the source has them."""
    yield root
    for kind in root.__subclasses__():
        yield from _tree(kind)


def _cli_errors() -> list[type[LeaseholdError]]:
    for module in pkgutil.walk_packages(leasehold.cli.__path__, "leasehold.cli."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    found = {kind for kind in _tree(LeaseholdError) if kind.__module__.startswith("leasehold.cli")}
    return sorted(found, key=lambda kind: kind.code)
