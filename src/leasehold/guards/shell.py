"""Which files a shell command is about to write, as far as its text shows.

Best effort, and pure but for one question: whether a path is a folder. Only literal paths count: targets of
redirections, and arguments of commands that are known to write to them. What a variable, a pattern or a
program decides when it runs is not seen; neither is what comes after a `cd` to such a place. Where a `cd` may
not have happened, a path is taken for one in each folder that the command may be in. A text that cannot be
read names nothing.
"""

import posixpath
import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from leasehold.guards.shell_words import Unreadable, Word, words_of

_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*\+?=.*", re.DOTALL)

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
    "elif",
    "while",
    "until",
    "!",
    "{",
)
"""Words that a command may come after."""
_PERHAPS = frozenset({"then", "do", "else", "if", "elif", "while", "until", "!"})
"""Those after which it may not be run, or what follows it may be run without it."""
_UNSURE = ("&&", "||", "|", "|&", ")")
"""Operators of the same kind; after a parenthesis comes the body of a function, or of a case."""
_FOLDER_OPTION = re.compile(r"--|-[LPe@]+")
"""Options of `cd` that do not change which folder its argument names."""


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
        words = list(words_of(command))
    except Unreadable:
        return []
    found: list[str] = []
    way = _Way(folder, is_folder)
    simple: list[Word] = []
    for word in [*words, Word(";", is_operator=True)]:
        if not word.is_operator or _is_redirection(word):
            simple.append(word)
            continue
        arguments, targets = _split(simple)
        simple = []
        for here in way.folders or (None,):
            for path in (*targets, *_arguments_written(arguments, _Place(here, is_folder))):
                if path.startswith("/") or here is not None:
                    found.append(posixpath.normpath(posixpath.join(here or "/", path)))
        way.go(arguments, word.text)
    return list(dict.fromkeys(found))


class _Way:
    """Which folders the next simple command may run in; none: nobody can tell."""

    def __init__(self, folder: str, is_folder: Callable[[str], bool]) -> None:
        self.folders = [folder]
        self._if_failed: list[str] = []
        """Where the commands after this chain of `&&` may be, if not all of it was run."""
        self._before = ";"
        self._outside: list[tuple[list[str], list[str]]] = []
        """Where the shells around this one are, in parentheses."""
        self._is_folder = is_folder

    def go(self, arguments: Sequence[Word], operator: str) -> None:
        """Go on past a simple command, and the operator behind it."""
        before_it, words = _taken_apart(arguments)
        is_sure = self._before not in _UNSURE and _PERHAPS.isdisjoint(word.text for word in before_it)
        # In a pipe, or in the background, it is another shell that goes elsewhere.
        if words and words[0].text in ("cd", "pushd", "popd") and operator not in ("|", "|&", "&"):
            before, self.folders = (
                self.folders,
                [target for folder in self.folders for target in _target(words, folder)],
            )
            if not is_sure or not all(self._is_folder(folder) for folder in self.folders):
                self._if_failed += before
        if operator == "(":
            self._outside.append((self.folders, self._if_failed))
            self._if_failed = []
        elif operator == ")" and self._outside:
            self.folders, self._if_failed = self._outside.pop()
        elif operator != "&&":
            self.folders = list(dict.fromkeys([*self.folders, *self._if_failed]))
            self._if_failed = []
        self._before = operator


def _target(words: Sequence[Word], here: str) -> list[str]:
    """Return where a `cd` leads from a folder; nothing: nobody can tell."""
    given = list(words[1:])
    while given and _FOLDER_OPTION.fullmatch(given[0].text):
        given.pop(0)
    if words[0].text == "popd" or len(given) != 1 or not given[0].is_literal or given[0].text.startswith("-"):
        return []
    return [posixpath.join(here, given[0].text)]


def _is_redirection(word: Word) -> bool:
    return word.is_operator and ("<" in word.text or ">" in word.text)


def _split(simple: Sequence[Word]) -> tuple[list[Word], list[str]]:
    """Return the words of a simple command, and the files that its output goes to."""
    arguments: list[Word] = []
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


def _taken_apart(arguments: Sequence[Word]) -> tuple[list[Word], list[Word]]:
    """Return what may come before a command, and the command."""
    words = list(arguments)
    before: list[Word] = []
    while words and (words[0].text in _BEFORE or _ASSIGNMENT.fullmatch(words[0].text)):
        before.append(words.pop(0))
    return before, words


def _arguments_written(arguments: Sequence[Word], place: _Place) -> list[str]:
    """Return the literal paths among the arguments of a command that it writes to."""
    _, words = _taken_apart(arguments)
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
        moved = paths if _target_option(options) is not None else paths[:-1]
        return [*(_literal(moved) if name == "mv" else ()), *_written_last(name, options, paths, place)]
    if name in _IN_PLACE and any(re.match(r"-[A-Za-z]*i|--in-place", one.text) for one in options):
        has_script = any(re.match(r"-[A-Za-z]*[ef]|--expression|--file", one.text) for one in options)
        return _literal(paths if has_script else paths[1:])
    return []


def _sorted(name: str, given: Sequence[Word]) -> tuple[list[Word], list[Word]]:
    """Return options, each with its value after it where it has one, and what comes between them."""
    options: list[Word] = []
    paths: list[Word] = []
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


def _written_last(name: str, options: Sequence[Word], paths: Sequence[Word], place: _Place) -> list[str]:
    """Return where copies go: to the last path, or into it if it is a folder, or into an option's folder.

    To `rsync`, a folder with a slash at its end is all that is in it.
    """
    target, sources = _target_option(options), list(paths)
    if target is None:
        if len(paths) < 2:
            return []
        target = sources.pop()
        if not place.has_folder(target.text):
            return _literal([target])
    copied = [
        "." if name == "rsync" and one.endswith("/") else posixpath.basename(one.rstrip("/"))
        for one in _literal(sources)
    ]
    return [posixpath.join(folder, one) for folder in _literal([target]) for one in copied]


def _target_option(options: Sequence[Word]) -> Word | None:
    for place, option in enumerate(options):
        if _TARGET_OPTION.fullmatch(option.text) and options[place + 1 :]:
            return options[place + 1]
        if option.text.startswith("--target-directory="):
            return option._replace(text=option.text.partition("=")[2])
    return None


def _written_by_git(given: Sequence[Word]) -> list[str]:
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
    if action == "restore" and _has(options, "--staged", "S") and not _has(options, "--worktree", "W"):
        return []
    return _literal(paths)


def _has(options: Sequence[Word], name: str, letter: str) -> bool:
    return any(re.fullmatch(rf"{name}|-\w*{letter}\w*", option.text) for option in options)


def _literal(words: Sequence[Word]) -> list[str]:
    return [word.text for word in words if word.is_literal and word.text]
