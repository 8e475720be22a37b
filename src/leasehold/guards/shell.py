"""Which files a shell command is about to write, as far as its text shows.

Best effort, and pure but for one question: whether a path is a folder. Only literal paths count: targets of
redirections, and arguments of commands that are known to write to them. What a variable, a pattern or a
program decides when it runs is not seen; neither is what comes after a `cd` to such a place. A text that
cannot be read names nothing.
"""

import posixpath
import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

_OPERATOR = re.compile(r"\d*(?:<<<|<<-?|<>|>>|>\||>&|<&|<|>)|&>>|&>|&&|\|\||;;|\|&|[;&|()\n]")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*\+?=.*", re.DOTALL)
_DYNAMIC = frozenset("$`*?[{~")
"""Characters that, unquoted, make a word something else than it says."""

_ALL = ("rm", "rmdir", "unlink", "touch", "tee", "truncate", "shred")
"""Commands that write to every path they are given."""
_LAST = ("cp", "ln", "install", "rsync", "mv")
"""Commands that write to the last path they are given, or into it if that is a folder; `mv` to all."""
_IN_PLACE = ("sed", "perl")
"""Commands that write to the paths they are given if they have -i."""
_WITH_VALUE = {"truncate": "sr", "touch": "dtr", "install": "mogS", "cp": "S", "ln": "S", "mv": "S"}
"""Short options, by command, whose value is the next word."""
_TARGET_OPTION = re.compile(r"-t|--target-directory")
_BEFORE = (
    "sudo",
    "command",
    "exec",
    "nohup",
    "time",
    "env",
    "builtin",
    "then",
    "do",
    "else",
    "if",
    "while",
    "!",
    "{",
)
"""Words that a command may come after."""


class _Word(NamedTuple):
    text: str
    is_literal: bool = True
    is_operator: bool = False


class _Unreadable(Exception):
    pass


class _Place(NamedTuple):
    """Where a simple command runs."""

    folder: str | None
    """None: nobody can tell."""
    is_folder: Callable[[str], bool]

    def has_folder(self, path: str) -> bool:
        """Say whether a path leads to a folder."""
        if self.folder is None and not path.startswith("/"):
            return False
        return self.is_folder(posixpath.join(self.folder or "/", path))


def written(command: str, folder: str, is_folder: Callable[[str], bool]) -> list[str]:
    """Return the absolute paths that a command is about to write, which begins in a folder."""
    try:
        words = list(_words(command))
    except _Unreadable:
        return []
    found: list[str] = []
    here: str | None = folder
    simple: list[_Word] = []
    for word in [*words, _Word(";", is_operator=True)]:
        if not word.is_operator or _is_redirection(word):
            simple.append(word)
            continue
        arguments, targets = _split(simple)
        simple = []
        for path in (*targets, *_arguments_written(arguments, _Place(here, is_folder))):
            if path.startswith("/") or here is not None:
                found.append(posixpath.normpath(posixpath.join(here or "/", path)))
        here = _folder_after(arguments, here)
    return found


def _is_redirection(word: _Word) -> bool:
    return word.is_operator and ("<" in word.text or ">" in word.text)


def _split(simple: Sequence[_Word]) -> tuple[list[_Word], list[str]]:
    """Return the words of a simple command, and the files that its output goes to."""
    arguments: list[_Word] = []
    targets: list[str] = []
    words = iter(simple)
    for word in words:
        if not word.is_operator:
            arguments.append(word)
            continue
        target = next(words, None)
        if target is None or ">" not in word.text or target.is_operator or not target.is_literal:
            continue
        if word.text.endswith(">&") and (target.text.isdecimal() or target.text == "-"):
            continue  # It is another stream.
        targets.append(target.text)
    return arguments, targets


def _folder_after(arguments: Sequence[_Word], here: str | None) -> str | None:
    """Return which folder the next command begins in; None: nobody can tell."""
    words = list(arguments)
    if not words or words[0].text not in ("cd", "pushd", "popd"):
        return here
    if words[0].text == "popd" or len(words) != 2 or not words[1].is_literal or words[1].text.startswith("-"):
        return None
    target = words[1].text
    if target.startswith("/"):
        return target
    return None if here is None else posixpath.join(here, target)


def _arguments_written(arguments: Sequence[_Word], place: _Place) -> list[str]:
    """Return the literal paths among the arguments of a command that it writes to."""
    words = list(arguments)
    while words and (words[0].text in _BEFORE or _ASSIGNMENT.fullmatch(words[0].text)):
        words.pop(0)
    if not words or not words[0].is_literal:
        return []
    name, given = posixpath.basename(words[0].text), words[1:]
    if name == "git":
        return _written_by_git(given)
    if name == "dd":
        return [
            one.text.removeprefix("of=") for one in given if one.is_literal and one.text.startswith("of=")
        ]
    options, paths = _sorted(name, given)
    if name in _ALL:
        return _literal(paths)
    if name in _LAST:
        return [*(_literal(paths[:-1]) if name == "mv" else ()), *_written_last(options, paths, place)]
    if name in _IN_PLACE and any(re.match(r"-[A-Za-z]*i|--in-place", one.text) for one in options):
        has_script = any(re.match(r"-[A-Za-z]*[ef]|--expression|--file", one.text) for one in options)
        return _literal(paths if has_script else paths[1:])
    return []


def _sorted(name: str, given: Sequence[_Word]) -> tuple[list[_Word], list[_Word]]:
    """Return options, each with its value after it where it has one, and what comes between them."""
    options: list[_Word] = []
    paths: list[_Word] = []
    with_value = _WITH_VALUE.get(name, "") + ("ef" if name in _IN_PLACE else "")
    words = iter(given)
    for word in words:
        if word.text == "--":
            paths += words
        elif len(word.text) > 1 and word.text.startswith("-"):
            options.append(word)
            takes_next = not word.text.startswith("--") and word.text[-1] in with_value
            if takes_next or _TARGET_OPTION.fullmatch(word.text):
                options += [value for value in [next(words, None)] if value is not None]
        else:
            paths.append(word)
    return options, paths


def _written_last(options: Sequence[_Word], paths: Sequence[_Word], place: _Place) -> list[str]:
    """Return where copies go: to the last path, or into it if it is a folder, or into an option's folder."""
    target, sources = _target_option(options), list(paths)
    if target is None:
        if len(paths) < 2:
            return []
        target = sources.pop()
        if not place.has_folder(target.text):
            return _literal([target])
    names = [posixpath.basename(one.rstrip("/")) for one in _literal(sources)]
    return [posixpath.join(folder, name) for folder in _literal([target]) for name in names]


def _target_option(options: Sequence[_Word]) -> _Word | None:
    for place, option in enumerate(options):
        if _TARGET_OPTION.fullmatch(option.text) and options[place + 1 :]:
            return options[place + 1]
        if option.text.startswith("--target-directory="):
            return option._replace(text=option.text.partition("=")[2])
    return None


def _written_by_git(given: Sequence[_Word]) -> list[str]:
    """Return the paths that git rm, mv, restore and `checkout --` change in the work tree."""
    if not given or not given[0].is_literal:
        return []  # Options before the command, such as -C, may lead elsewhere.
    action, rest = given[0].text, given[1:]
    texts = [word.text for word in rest]
    if action == "checkout":
        return _literal(rest[texts.index("--") + 1 :]) if "--" in texts else []
    if action not in ("rm", "mv", "restore") or "--cached" in texts:
        return []
    options, paths = _sorted("git", [word for word in rest if word.text not in ("-s", "--source")])
    return [] if any(option.text == "--staged" for option in options) else _literal(paths)


def _literal(words: Sequence[_Word]) -> list[str]:
    return [word.text for word in words if word.is_literal and word.text]


def _words(command: str) -> Iterator[_Word]:
    """Yield words and operators as a shell reads them, without comments and what is fed in between."""
    at, ends = 0, []
    while at < len(command):
        character = command[at]
        if command.startswith("\\\n", at):
            at += 2
        elif character in " \t":
            at += 1
        elif character == "#":
            at = _line_end(command, at)
        elif found := _OPERATOR.match(command, at):
            at = found.end()
            yield _Word(found[0].lstrip("0123456789"), is_operator=True)
            if found[0].lstrip("0123456789") in ("<<", "<<-"):
                word, at = _read_word(command, _skip_blanks(command, at))
                ends.append(word.text)
                yield word
            elif found[0] == "\n" and ends:
                at = _skip_documents(command, at, ends)
                ends = []
        else:
            word, at = _read_word(command, at)
            yield word


def _skip_blanks(command: str, at: int) -> int:
    while at < len(command) and command[at] in " \t":
        at += 1
    return at


def _line_end(command: str, at: int) -> int:
    end = command.find("\n", at)
    return len(command) if end < 0 else end


def _skip_documents(command: str, at: int, ends: Sequence[str]) -> int:
    """Return where the text after here-documents begins."""
    for end in ends:
        while True:
            if at >= len(command):
                return at
            line_end = _line_end(command, at)
            line, at = command[at:line_end], line_end + 1
            if line.lstrip("\t") == end:
                break
    return min(at, len(command))


def _read_word(command: str, at: int) -> tuple[_Word, int]:
    """Return the word that begins somewhere, without its quotes, and where it ends."""
    text: list[str] = []
    is_literal = True
    while at < len(command):
        character = command[at]
        if character in " \t\n;&|()<>":
            break
        if character == "\\":
            text.append(command[at + 1 : at + 2])
            at += 2
        elif character == "'":
            end = command.find("'", at + 1)
            if end < 0:
                raise _Unreadable
            text.append(command[at + 1 : end])
            at = end + 1
        elif character == '"':
            inside, plain, at = _read_quoted(command, at + 1)
            text.append(inside)
            is_literal = is_literal and plain
        else:
            is_literal = is_literal and character not in _DYNAMIC
            text.append(character)
            at += 1
    return _Word("".join(text), is_literal), at


def _read_quoted(command: str, at: int) -> tuple[str, bool, int]:
    """Return what stands between double quotes, whether that is all there is to it, and where it ends."""
    text: list[str] = []
    is_plain = True
    while at < len(command):
        character = command[at]
        if character == '"':
            return "".join(text), is_plain, at + 1
        if character == "\\" and command[at + 1 : at + 2] in ('"', "\\", "$", "`", "\n"):
            text.append(command[at + 1].strip("\n"))
            at += 2
            continue
        is_plain = is_plain and character not in "$`"
        text.append(character)
        at += 1
    raise _Unreadable
