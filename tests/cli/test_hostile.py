"""Every command, whatever its arguments and the store contain: a clear answer, which steers no terminal."""

import argparse
import io
import json
import re
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

import leasehold
from leasehold.cli.entry import main
from leasehold.cli.output import escaped, json_of
from leasehold.cli.parser import all_commands
from tests.certificates.statements import KEY
from tests.cli.shell import EXECUTABLE, Shell
from tests.enforcing.test_enforcer import fresh
from tests.lanes import some_of

NAME = "d\x9b31m\u202er\u200b\u2028"
"""As much as a name can contain."""
TEXT = "\x1b]0;title\x07\x9b31m\u202e\x7f"
"""As much as any text can."""
NOT_UTF_8 = "caf\udce9"
DIGITS = "9" * 5_000
VALUES = (
    "", " ", NAME, TEXT, NOT_UTF_8, f"tool={NOT_UTF_8}", "x" * 5_000, "9" * 400, DIGITS, f"tokens={DIGITS}",
    "-1", "nan", "1e999", "/", "..", "/dev/null", "/dev/full", "folder", "plain", "loop", "=",
    "1:" + "0" * 64,
    f"{DIGITS}:{'0' * 64}", "0001-01-01T00:00", "a.b.c",
)  # fmt: skip

COMMANDS = all_commands()
ENDLESS = {"demo", "watch", "guard hook", "mcp", "serve"} | COMMANDS.with_child
"""Commands that end by themselves only after a while, if at all, or end the process with them."""
QUICK = sorted(COMMANDS.by_name.keys() - COMMANDS.groups - ENDLESS)
GLOBAL = {"--store", "--tenant", "--durability"}
SWITCHES = {"--json", "--group", "--no-color", "--help"}
EXIT_CODES = {0, 1, 2, 3, 64, 75, 76}


class Said(NamedTuple):
    """What a command left behind."""

    code: object
    out: str
    err: str


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with a store in which everything has the worst name it can have."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LEASEHOLD_URL", str(tmp_path / "leases"))
    monkeypatch.setenv("LEASEHOLD_HOLDER", NAME)
    monkeypatch.delenv("LEASEHOLD_DEBUG", raising=False)
    (tmp_path / "folder").mkdir()
    (tmp_path / "plain").write_text(TEXT)
    (tmp_path / "loop").symlink_to("loop")
    with leasehold.connect(tmp_path / "leases", holder=NAME, durability="fast") as leases:
        lease = leases.acquire(
            NAME,
            ttl=3600,
            metadata={TEXT: f"{TEXT}\n"},
            scope=leasehold.Scope(tools=(NAME,)),
            budget=leasehold.Budget(tokens=10),
        )
        lease.derive(f"{NAME}/part", budget=leasehold.Budget(tokens=3)).detach()
        leases.revoke(leases.acquire(f"{NAME}/ended").lease_id, reason=NAME)
        lease.detach()
    return tmp_path


@pytest.fixture(autouse=True)
def signals_as_before() -> Iterator[None]:
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    yield
    for number, handler in handlers.items():
        signal.signal(number, handler)


def said(*argv: str) -> Said:
    """Run a command in this process: there are a thousand of them."""
    streams = sys.stdin, sys.stdout, sys.stderr
    out, err = io.StringIO(), io.StringIO()
    sys.stdin, sys.stdout, sys.stderr = io.StringIO(TEXT), out, err
    try:
        code: object = main(argv)
    except SystemExit as end:
        code = end.code
    finally:
        sys.stdin, sys.stdout, sys.stderr = streams
    return Said(code, out.getvalue(), err.getvalue())


def check(*argv: str) -> None:
    """Run a command; whatever it was given, it says what is wrong with that and not that it is defective."""
    found = said(*argv)
    assert found.code in EXIT_CODES, (argv, found)
    assert "defect" not in found.err, (argv, found)
    assert is_harmless(found.out + found.err), (argv, found)
    if "--json" in argv:
        for line in (found.out + found.err).splitlines():
            json.loads(line)


def is_harmless(text: str) -> bool:
    return text.replace("\n", "").isprintable()


def all_values(number: int) -> Sequence[str]:
    return VALUES


def few_values(number: int) -> Sequence[str]:
    """Return others for each argument."""
    return some_of(VALUES, 1, offset=number)


def calls_of(command: str, values: Callable[[int], Sequence[str]] = all_values) -> Iterator[list[str]]:
    """Yield arguments for a command: first as it should be called, then with one wrong value at a time."""
    words = command.split()
    own = [action for action in COMMANDS.by_name[command]._actions if not GLOBAL & {*action.option_strings}]
    options = [action for action in own if action.option_strings]
    positionals = [action for action in own if not action.option_strings]
    required = [f"{action.option_strings[-1]}={NAME}" for action in options if action.required]

    def placed(wrong: argparse.Action | None = None, value: str = "") -> list[str]:
        usual = {action: next(iter(action.choices or [NAME])) for action in positionals}
        return ["--", *((usual | {wrong: value})[action] for action in positionals)] if positionals else []

    for action in positionals:
        for value in action.choices or ():
            yield [*words, *required, *placed(action, value)]
    yield [*words, *required, *placed()]
    for number, action in enumerate(positionals):
        for value in values(number):
            yield [*words, *required, *placed(action, value)]
    for number, action in enumerate(options):
        name = action.option_strings[-1]
        if name in SWITCHES:
            continue
        others = [one for one in required if not one.startswith(f"{name}=")]
        if action.nargs == 0:
            yield [*words, *others, name, *placed()]
            continue
        for value in values(number):
            yield [*words, *others, f"{name}={value}", *placed()]


@pytest.mark.deep
@pytest.mark.parametrize("command", QUICK)
def test_a_command_answers_whatever_it_is_given(folder: Path, command: str) -> None:
    for number, argv in enumerate(calls_of(command, few_values)):
        check(argv[0], *(["--json"] if number % 2 else []), *argv[1:])


@pytest.mark.deep
@pytest.mark.parametrize("option", sorted(GLOBAL))
def test_global_options_answer_whatever_they_are_given(folder: Path, option: str) -> None:
    for number, value in enumerate(some_of(VALUES, 3)):
        for command in (["ls"], ["acquire", "door"], ["doctor"]):
            check(*command, f"{option}={value}", *(["--json"] if number % 2 else []))


@pytest.mark.parametrize("argv", [[TEXT], [f"--{TEXT}"], ["ls", f"--{TEXT}"], ["ls", NAME, TEXT]])
@pytest.mark.parametrize("as_json", [[], ["--json"]])
def test_what_is_no_command_and_no_option_is_echoed_escaped(argv: list[str], as_json: list[str]) -> None:
    check(*argv, *as_json)


@pytest.mark.parametrize("as_json", [[], ["--json"]])
def test_a_certificate_that_nobody_has_checked_is_shown_escaped(as_json: list[str], folder: Path) -> None:
    worst = fresh(resource=TEXT, holder=TEXT, tenant=TEXT, lease_id=TEXT)
    found = said("certificate", "show", worst, *as_json)
    assert found.code == 0
    assert is_harmless(found.out)
    assert "\\u001b]0;title" in found.out
    check("certificate", "verify", worst, f"--key={KEY.public_key.hex()}", f"--resource={TEXT}", *as_json)


def test_json_says_the_same_escaped(folder: Path) -> None:
    (shape,) = map(json.loads, said("ls", "--json").out.splitlines()[:1])
    assert NAME in (lease["resource"] for lease in shape["leases"])
    told = json.loads(said("show", NAME, "--json").out)["leases"][0]
    assert told["metadata"] == {TEXT: f"{TEXT}\n"}
    assert json.loads(escaped(json_of({NOT_UTF_8: [b"x", NOT_UTF_8]}))) == {NOT_UTF_8: ["eA==", NOT_UTF_8]}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("a\\b", "a\\b"),
        ("Tür/門/🚪", "Tür/門/🚪"),
        ("\x1b[31m", "\\u001b[31m"),
        ("\x9b\x7f\n", "\\u009b\\u007f\\u000a"),
        ("\u202e\u2066\u200b\u2028", "\\u202e\\u2066\\u200b\\u2028"),
        ("\U000e0041", "\\udb40\\udc41"),
        ("\udce9", "\\udce9"),
    ],
)
def test_what_is_not_printable_is_spelled_as_json_spells_it(text: str, shown: str) -> None:
    assert escaped(text) == escaped(escaped(text)) == shown


def test_nothing_but_the_module_for_output_writes_to_a_terminal() -> None:
    sources = Path(leasehold.__file__).parent
    allowed = {"cli/output.py", "cli/progress.py", "cli/screen.py", "cli/demo_parts/worker.py"}
    printing = {
        str(file.relative_to(sources))
        for file in sources.rglob("*.py")
        if re.search(r"(?<![\w.])print\(|std(out|err)\.write\(", file.read_text())
    }
    assert {name for name in printing if not name.startswith("testing/")} == allowed


def test_watch_shows_names_escaped(shell: Shell) -> None:
    with shell.client() as client:
        client.acquire(NAME, holder=NAME).detach()
    watching = shell.start("watch", "--after", "0")
    while escaped(NAME) not in (line := watching.line()):
        assert is_harmless(line)
    assert is_harmless(line)


def test_run_tells_of_a_refusal_escaped_and_hands_names_on_as_they_are(shell: Shell) -> None:
    with shell.client() as client:
        lease = client.acquire(NAME, holder=NAME)
        refused = shell.run("run", NAME, "--", "true", code=75)
        assert is_harmless(refused.err)
        lease.release()
    assert is_harmless(shell.run("run", NAME, "--", TEXT, code=127).err)
    printed = shell.run("run", NAME, "--holder", NAME, "--", "printenv", "LEASEHOLD_RESOURCE")
    assert printed.out == f"{NAME}\n"


def test_top_shows_names_escaped_on_a_terminal(shell: Shell) -> None:
    with shell.client() as client:
        client.acquire(NAME, holder=NAME).detach()
    terminal = shell.terminal(EXECUTABLE, "top")
    terminal.wait_for(escaped(NAME))
    terminal.press(b"q")
    code, shown = terminal.end()
    assert code == 0
    assert is_harmless(re.sub(r"\x1b\[[?0-9;]*[A-Za-z]|\r", "", shown))


def test_every_command_answers_where_the_working_directory_is_gone(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = folder / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    for store in (str(folder / "leases.db"), "leases.db", ""):
        monkeypatch.setenv("LEASEHOLD_URL", store)
        for command in QUICK:
            check(*next(calls_of(command)))


def test_every_command_answers_where_nothing_can_be_written(folder: Path) -> None:
    for command in QUICK:
        err = io.StringIO()
        streams = sys.stdout, sys.stderr
        with Path("/dev/full").open("w") as full:
            sys.stdout, sys.stderr = full, err
            try:
                code = main([*next(calls_of(command))])
            finally:
                sys.stdout, sys.stderr = streams
        assert code in EXIT_CODES
        assert "defect" not in err.getvalue(), (command, err.getvalue())
        assert "No space left on device" in err.getvalue() or code, command
