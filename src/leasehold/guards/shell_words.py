"""The words of a shell command: quotes, escapes, comments and here-documents, as a shell reads them."""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

_OPERATOR = re.compile(r"\d*(?:<<<|<<-?|<>|>>|>\||>&|<&|<|>)|&>>|&>|&&|\|\||;;|\|&|[;&|()\n]")
_ESCAPED = re.compile(r"\$'(?:[^'\\]|\\.)*'", re.DOTALL)
"""Text in which a backslash means something."""
_DYNAMIC = frozenset("$`*?[{~")
"""Characters that, unquoted, make a word something else than it says."""


class Word(NamedTuple):
    """A word without its quotes, or an operator."""

    text: str
    is_literal: bool = True
    """It means what it says: nothing in it is expanded."""
    is_operator: bool = False


class Unreadable(Exception):
    """A shell could not read this, either."""


def words_of(command: str) -> Iterator[Word]:
    """Yield words and operators as a shell reads them, without comments and what is fed in between.

    Raise Unreadable if it ends within quotes.
    """
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
            yield Word(found[0].lstrip("0123456789"), is_operator=True)
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


def _read_word(command: str, at: int) -> tuple[Word, int]:
    """Return the word that begins somewhere, without its quotes, and where it ends."""
    text: list[str] = []
    is_literal = True
    while at < len(command):
        character = command[at]
        if character in " \t\n;&|()<>":
            break
        if character == "\\":
            text.append(command[at + 1 : at + 2].strip("\n"))  # Before the end of a line, it joins two lines.
            at += 2
        elif found := _ESCAPED.match(command, at):
            is_literal = False
            at = found.end()
        elif character == "'":
            end = command.find("'", at + 1)
            if end < 0:
                raise Unreadable
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
    return Word("".join(text), is_literal), at


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
    raise Unreadable
