"""guard: is a path free to be changed; and the hooks that ask that, installed and removed."""

import os
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NoReturn

from leasehold.cli.connecting import add_holder_option, holder_of
from leasehold.cli.output import Output, say_on_stderr
from leasehold.cli.parser import Commands, UsageError
from leasehold.guards.verdict import BYPASS_VARIABLE, EXIT_USAGE, MODES, Outcome, Verdict

if TYPE_CHECKING:
    from leasehold.guards.asking import Refused

TARGETS = ("git", "claude-code")


class GuardUsage(UsageError, code="GUARD_USAGE", exit_code=EXIT_USAGE):
    """The command line cannot be understood; exit code 2 would say that somebody else has the path."""


def add_commands(commands: Commands) -> None:
    """Add the commands of this module."""
    _add_guard(commands)
    _add_install(commands)
    _add_uninstall(commands)
    _add_hook(commands)


def _add_guard(commands: Commands) -> None:
    parser = commands.add(
        "guard",
        _guard,
        "refuse paths that somebody else has leased",
        details="""\
Says nothing if every path is free, or yours. Else it says of each who has it, why, until when, and what to
type next. It waits for nobody, and claims nothing. `--staged` checks what the next commit would change, both
names of a rename included. `leasehold guard install` has git, or a coding agent, ask all the time. A file
that is called install, uninstall or hook is written ./install.

--bypass (or $LEASEHOLD_BYPASS) lets you through all the same, and history says that you did, and why.

examples:
  leasehold guard src/app.py docs/ --as agent-7
  leasehold guard --staged
  leasehold guard src/app.py --bypass 'the build is broken, and agent-7 does not answer'

exit codes: 0 allowed · 2 refused · 3 could not tell · 64 wrong usage; --mode warn: 0 instead of 2 and 3""",
        usage_error=GuardUsage,
    )
    parser.add_argument("paths", metavar="PATH", nargs="*", help="a file, a folder, or a pattern in quotes")
    parser.add_argument("--staged", action="store_true", help="check what the next commit would change")
    parser.add_argument(
        "--pushed",
        metavar="REMOTE",
        help="check what a push would bring to a remote, as git tells a pre-push hook on stdin",
    )
    add_holder_option(parser, "who wants to change it")
    _add_mode_option(parser)
    parser.add_argument(
        "--bypass", metavar="REASON", help="pass all the same; history keeps who did, and the reason"
    )


def _add_mode_option(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--mode",
        choices=MODES,
        default="block",
        help="whether to stop who is refused, or cannot be told, or only to say so (default: %(default)s)",
    )


def _add_install(commands: Commands) -> None:
    parser = commands.add(
        "guard install",
        _install,
        "have git, or a coding agent, ask the guard",
        details="""\
git: before every commit, merge and push. A hook that is there already runs after the guard. Work trees share
it, and so does whatever core.hooksPath names. `git commit --no-verify` skips it.

claude-code: before a tool of Claude Code writes a file, and at the end of a session, by an entry in
.claude/settings.local.json. The file is claimed for the agent, and released at the end.

--store sets git's leasehold.url, so that several clones share one store, which is made if need be, or a
server: http://… or https://…, with an access key in $LEASEHOLD_API_KEY. --tenant sets git's leasehold.tenant,
which a key that is bound to a tenant needs.

examples:
  leasehold guard install git
  leasehold guard install claude-code --mode warn
  leasehold guard install git --store /srv/leases/shop
  leasehold guard install git --store https://leases.example.org --tenant acme

exit codes: 0 installed · 1 error · 64 wrong usage""",
        usage_error=GuardUsage,
    )
    parser.add_argument("target", metavar="TARGET", nargs="?", choices=TARGETS, help="git, or claude-code")
    _add_mode_option(parser)


def _add_uninstall(commands: Commands) -> None:
    parser = commands.add(
        "guard uninstall",
        _uninstall,
        "remove what `guard install` has put there",
        details="""\
What was there before is there again, byte for byte, unless somebody has changed it since: then only what is
leasehold's is taken out. `store` puts git's leasehold.url and leasehold.tenant back as they were.

examples:
  leasehold guard uninstall git
  leasehold guard uninstall claude-code

exit codes: 0 removed, or nothing was there · 1 error · 64 wrong usage""",
        usage_error=GuardUsage,
    )
    parser.add_argument(
        "target", metavar="TARGET", choices=(*TARGETS, "store"), help="git, claude-code, or store"
    )


def _add_hook(commands: Commands) -> None:
    parser = commands.add(
        "guard hook",
        _hook,
        "answer Claude Code, which runs this as a hook",
        details="""\
Reads what Claude Code is about to do, as JSON, from stdin. Before a tool writes a file of this repository,
the file is claimed for the agent, or the tool is blocked. --release gives back what a session or a subagent
has. It answers within 5 seconds.

example:
  leasehold guard install claude-code

exit codes: 0 allowed, or nothing to say · 2 refused, or could not tell; with --mode warn, 0 and a message ·
            1 it could not release""",
        usage_error=GuardUsage,
    )
    _add_mode_option(parser)
    parser.add_argument("--release", action="store_true", help="give back what the agent has")


def _guard(arguments: Namespace, out: Output) -> int:
    from leasehold.guards.asking import Asker
    from leasehold.guards.judging import Case, judge

    if sum((bool(arguments.paths), arguments.staged, arguments.pushed is not None)) != 1:
        raise GuardUsage("name paths, or give --staged; see `leasehold guard --help`")
    if arguments.holder == "":
        raise GuardUsage("--as needs a name; the variable that it came from is not set")
    if arguments.tenant == "":
        raise GuardUsage("--tenant needs a name; the variable that it came from is not set")
    if arguments.bypass is not None and not arguments.bypass.strip():
        raise GuardUsage("--bypass needs a reason, which history keeps")
    bypass = os.environ.get(BYPASS_VARIABLE) if arguments.bypass is None else arguments.bypass
    asker = Asker(holder_of(arguments), tenant=arguments.tenant, url=arguments.store)
    with _never_as_a_refusal():
        verdict, found = judge(Case(arguments.paths, arguments.staged, arguments.pushed), asker, bypass)
    return _tell(arguments, out, verdict, found)


def _tell(arguments: Namespace, out: Output, verdict: Verdict, found: "list[Refused]") -> int:
    if out.as_json:
        out.json(
            {
                "outcome": verdict.outcome.name.lower(),
                "mode": arguments.mode,
                "bypassed": bool(found) and verdict.outcome is Outcome.ALLOWED,
                "refused": [_shape(one) for one in found],
                "reasons": list(verdict.reasons),
            }
        )
    else:
        for line in verdict.lines():
            say_on_stderr(f"leasehold: {line}")
    return verdict.exit_code(arguments.mode)


def _shape(one: "Refused") -> dict[str, object]:
    lease = one.by.lease
    return {
        "path": one.name.path,
        "resource": one.name.resource,
        "lease_id": lease.lease_id,
        "held": lease.resource,
        "holder": lease.holder,
        "expires_in": one.by.expires_in,
    }


def _install(arguments: Namespace, out: Output) -> int:
    from leasehold.guards import claude_code, git_hooks, shared_store

    if arguments.target is None and arguments.store is None and arguments.tenant is None:
        raise GuardUsage(
            "name git or claude-code, or a store with --store; see `leasehold guard install --help`"
        )
    done = []
    with _never_as_a_refusal():
        names_place = arguments.store is not None or arguments.tenant is not None
        settings = shared_store.checked(arguments.store, arguments.tenant) if names_place else {}
        # Hooks that cannot be installed leave no settings behind.
        if arguments.target == "git":
            done += git_hooks.install(arguments.mode)
        elif arguments.target == "claude-code":
            done += claude_code.install(arguments.mode)
        if settings:
            done += shared_store.install(settings)
    return _tell_what_was_done(out, done)


def _uninstall(arguments: Namespace, out: Output) -> int:
    from leasehold.guards import claude_code, git_hooks, shared_store

    remove = {
        "git": git_hooks.uninstall,
        "claude-code": claude_code.uninstall,
        "store": shared_store.uninstall,
    }[arguments.target]
    with _never_as_a_refusal():
        return _tell_what_was_done(out, remove())


@contextmanager
def _never_as_a_refusal() -> Iterator[None]:
    """Let what was given wrongly end with another exit code than 2, which says that somebody has a path."""
    from leasehold.errors import InvalidInput

    try:
        yield
    except InvalidInput as error:
        raise GuardUsage(str(error)) from None


def _tell_what_was_done(out: Output, done: "list[str]") -> int:
    if out.as_json:
        out.json({"done": done})
    else:
        for line in done or ["nothing of leasehold's is installed there"]:
            out.line(line)
    return 0


def _hook(arguments: Namespace, out: Output) -> NoReturn:
    from leasehold.guards.hook import RELEASE_OPTION, main

    main([RELEASE_OPTION] if arguments.release else ["--mode", arguments.mode])
