r"""Patterns: which paths they cover, and whether two of them can cover the same one.

A path with an unescaped ``*``, ``?``, ``[`` or ``{`` is a pattern. ``*`` stands for any text inside one name,
``?`` for one character, ``[a-z]`` and ``[!a-z]`` for one character of a set, ``{a,b}`` for either text, and a
name that is ``**`` for any number of names, none among them. A dot at the beginning of a name is a character
like any other. A backslash takes the meaning from the character behind it. A pattern covers what it matches,
and everything below that. But what has an extension is taken for a file, with nothing below it: else every
``**/*.py`` would be in the way of every ``README.md``, which might be a folder.

Whether two patterns overlap is worked out from their texts, never by trying names. The cost is bounded: a
resource has at most 512 bytes, the alternatives in one name are at most ``ALTERNATIVES``, and each pair of
names is compared once, in as many steps as one of them has characters. Braces and sets end in the
name in which they begin, so what one name can be does not multiply with what the others can.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import takewhile
from typing import NamedTuple

ALTERNATIVES = 32
"""How many texts the braces in one name of a pattern may stand for."""

_LAST = 0x10FFFF
_SLASH = ord("/")
_ESCAPED = re.compile(r"[*?\[{\\]")
_LITERAL = re.compile(r"(?:[^*?\[{\\]|\\[*?\[{\\])*")
"""What a path, or a pattern up to its first special character, consists of: escaped is what has to be."""

_Ranges = tuple[tuple[int, int], ...]
"""A set of characters, as ranges that do not touch, in order."""
_Token = _Ranges | None
"""One character of a set; None: any text."""
_Tokens = tuple[_Token, ...]

_DOT: _Ranges = ((ord("."), ord(".")),)
_ANY: _Ranges = ((0, _SLASH - 1), (_SLASH + 1, _LAST))


class _Text(NamedTuple):
    """One of the texts that a name may be, made ready to be compared."""

    tokens: _Tokens
    head: str
    tail: str
    """What it begins and ends with, whatever else it is."""
    gaps: int
    """The bits of the tokens that stand for any text."""
    letters: dict[_Ranges, int]
    """By single character, the bits of the tokens that are just that."""
    sets: tuple[tuple[int, _Ranges], ...]
    """The other tokens, each with its bit."""

    def bits_of(self, token: _Ranges) -> int:
        """Return the bits of the tokens that share a character with another one."""
        if not self.sets and len(token) == 1 and token[0][0] == token[0][1]:
            return self.letters.get(token, 0)
        found = sum(bit for bit, theirs in self.sets if _share(token, theirs))
        return found + sum(bits for theirs, bits in self.letters.items() if _share(token, theirs))


_Name = str | tuple[_Text, ...] | None
"""A name as it is written out, or the texts that it may be; None: any number of names."""


class BadPattern(ValueError):
    """A pattern cannot be parsed, or is too much; the message says where and why."""


def escape(text: str) -> str:
    """Spell a text so that in a pattern it means just itself."""
    return _ESCAPED.sub(r"\\\g<0>", text)


def literal_prefix(path: str) -> str:
    """Return what every path begins with that a pattern matches: all of it, if it is none."""
    found = _LITERAL.match(path)
    assert found is not None
    return found[0]


class Parsed(NamedTuple):
    """A path or pattern, taken apart."""

    names: tuple[_Name, ...]
    is_file: bool
    """Whether what it matches has an extension, and so is taken for a file by patterns."""


@lru_cache(maxsize=4_096)
def parsed(path: str) -> Parsed:
    """Take a path or pattern apart; raise BadPattern if that is not possible."""
    names = () if path == "/" else tuple(_name_of(text) for text in path[1:].split("/"))
    return Parsed(names, bool(names) and _has_extension(names[-1]))


def _has_extension(name: _Name) -> bool:
    if isinstance(name, str):
        return "." in name[1:]
    return name is not None and all(_DOT in text.tokens[1:] for text in name)


@lru_cache(maxsize=16_384)
def overlap(one: str, other: str, *, only: bool = False) -> bool:
    """Say whether there is a path that both of two patterns cover; `only`: of the other, nothing below it."""
    mine, theirs = parsed(one), parsed(other)
    end, their_end = len(mine.names), len(theirs.names)
    ahead, seen = [(0, 0)], {(0, 0)}
    while ahead:
        here, there = ahead.pop()
        ended, they_ended = here == end, there == their_end
        if (ended and (they_ended or not mine.is_file)) or (they_ended and not theirs.is_file and not only):
            return True  # What is matched to its end covers all that the other goes on to.
        for step in _steps(mine.names[here : here + 1], theirs.names[there : there + 1]):
            pair = (here + step[0], there + step[1])
            if pair not in seen:
                seen.add(pair)
                ahead.append(pair)
    return False


def _steps(mine: tuple[_Name, ...], theirs: tuple[_Name, ...]) -> Iterator[tuple[int, int]]:
    """Yield by how many names two patterns can go on together; each has one more at most."""
    if mine == (None,):
        yield 1, 0  # It has come to its end, or takes up the other's name.
        yield 0, len(theirs)
    if theirs == (None,):
        yield 0, 1
        yield len(mine), 0
    for one, other in zip(mine, theirs, strict=False):
        if one is not None and other is not None and _meet(one, other):
            yield 1, 1


def _meet(one: str | tuple[_Text, ...], other: str | tuple[_Text, ...]) -> bool:
    """Say whether a text can be both of two names."""
    if isinstance(one, str) and isinstance(other, str):
        return one == other
    return any(_are_one(mine, theirs) for mine in _texts_of(one) for theirs in _texts_of(other))


def _texts_of(name: str | tuple[_Text, ...]) -> tuple[_Text, ...]:
    return (_ready(tuple(_only(letter) for letter in name)),) if isinstance(name, str) else name


def _ready(tokens: _Tokens) -> _Text:
    letters: dict[_Ranges, int] = {}
    sets: list[tuple[int, _Ranges]] = []
    for place, token in enumerate(tokens):
        if token is not None and _letter_of(token):
            letters[token] = letters.get(token, 0) | 1 << place
        elif token is not None:
            sets.append((1 << place, token))
    spelled = [_letter_of(token) for token in tokens]
    head = "".join(takewhile(bool, spelled))
    tail = "".join(takewhile(bool, reversed(spelled)))[::-1]
    gaps = sum(1 << place for place, token in enumerate(tokens) if token is None)
    return _Text(tokens, head, tail, gaps, letters, tuple(sets))


def _letter_of(token: _Token) -> str:
    """Return the only character that a token can be; empty if it can be others."""
    return chr(token[0][0]) if token is not None and len(token) == 1 and token[0][0] == token[0][1] else ""


def _are_one(one: _Text, other: _Text) -> bool:
    """Walk through one text, and keep in the bits of a number where in the other it can have led."""
    if not (one.head.startswith(other.head) or other.head.startswith(one.head)):
        return False
    if not (one.tail.endswith(other.tail) or other.tail.endswith(one.tail)):
        return False
    length, gaps = len(other.tokens), other.gaps
    places = _with_empty_text(1, gaps)
    for token in one.tokens:
        if token is None:
            places = (1 << (length + 1)) - (
                places & -places
            )  # Any text leads to everywhere behind the first.
            continue
        places = _with_empty_text(((places & other.bits_of(token)) << 1) | (places & gaps), gaps)
        if not places:
            return False
    return bool(places >> length)


def _with_empty_text(places: int, gaps: int) -> int:
    return places | ((places & gaps) << 1)


def _share(one: _Ranges, other: _Ranges) -> bool:
    return any(
        low <= their_high and their_low <= high for low, high in one for their_low, their_high in other
    )


def _only(letter: str) -> _Ranges:
    return ((ord(letter), ord(letter)),)


def _name_of(text: str) -> _Name:
    if text == "**":
        return None
    spelled = _LITERAL.fullmatch(text)
    if spelled is not None:
        return re.sub(r"\\(.)", r"\1", text)
    texts = [one for one in _expanded(text) if one]
    if not texts:
        raise BadPattern(f"{text!r} matches no name")
    return tuple(_ready(_tokens_in(one, text)) for one in texts)


def _expanded(text: str) -> list[str]:
    """Return the texts that braces stand for, each without braces."""
    found = [""]
    for parts in _parts(text):
        found = [before + part for before in found for part in parts]
        if len(found) > ALTERNATIVES:
            raise BadPattern(f"the braces in {text!r} stand for more than {ALTERNATIVES} texts")
    return found


def _parts(text: str) -> Iterator[list[str]]:
    """Yield what stands side by side in a text: as it is written, or what a pair of braces stands for."""
    position = 0
    while position < len(text):
        if text[position] == "{":
            options, position = _options(text, position + 1)
            yield options
            continue
        end = _end_of_piece(text, position)
        yield [text[position:end]]
        position = end


def _end_of_piece(text: str, position: int) -> int:
    """Return where the character, escaped character or set ends that begins at a position."""
    if text[position] == "\\":
        if position + 1 == len(text):
            raise BadPattern(f"{text!r} ends with a backslash, which escapes nothing")
        return position + 2
    if text[position] != "[":
        return position + 1
    end = position + 2 if text[position + 1 : position + 2] in ("!", "^") else position + 1
    first = end
    while end < len(text) and (text[end] != "]" or end == first):
        end += 2 if text[end] == "\\" else 1
    if end >= len(text):
        raise BadPattern(f"a '[' in {text!r} is not closed; write '\\[' for the character itself")
    return end + 1


def _options(text: str, position: int) -> tuple[list[str], int]:
    """Return what a pair of braces that was opened stands for, and where it ends."""
    options, start, depth = list[str](), position, 0
    while position < len(text):
        letter = text[position]
        if letter in ",}" and depth == 0:
            options += _expanded(text[start:position])
            start = position + 1
            if letter == "}":
                return options, start
        depth += (letter == "{") - (letter == "}")
        position = _end_of_piece(text, position)
    raise BadPattern(f"a '{{' in {text!r} is not closed; write '\\{{' for the character itself")


def _tokens_in(text: str, name: str) -> _Tokens:
    tokens: list[_Token] = []
    position = 0
    while position < len(text):
        end = _end_of_piece(text, position)
        letter = text[position]
        if letter == "*":
            tokens += [None] if tokens[-1:] != [None] else []
        elif letter == "?":
            tokens.append(_ANY)
        elif letter == "[":
            tokens.append(_set_of(text[position + 1 : end - 1], name))
        else:
            tokens.append(_only(text[end - 1]))
        position = end
    return tuple(tokens)


def _set_of(text: str, name: str) -> _Ranges:
    negated = text[0] in "!^"
    letters = _letters_of(text[1:] if negated else text)
    found: list[tuple[int, int]] = []
    while letters:
        low, high = letters[0][0], letters[0][0]
        if len(letters) > 2 and letters[1] == ("-", False):
            high = letters[2][0]
            del letters[:2]
        del letters[0]
        if low > high:
            raise BadPattern(f"the range {low}-{high} in {name!r} is the wrong way round")
        found.append((ord(low), ord(high)))
    ranges = _without_slash(_inverted(found) if negated else found)
    if not ranges:
        raise BadPattern(f"a set in {name!r} contains no character")
    return ranges


def _letters_of(text: str) -> list[tuple[str, bool]]:
    """Return the characters of a set, each with whether it was escaped."""
    return [(one[-1], len(one) > 1) for one in re.findall(r"\\.|.", text, re.DOTALL)]


def _inverted(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    found, start = [], 0
    for low, high in sorted(ranges):
        if start < low:
            found.append((start, low - 1))
        start = max(start, high + 1)
    return [*found, (start, _LAST)] if start <= _LAST else found


def _without_slash(ranges: list[tuple[int, int]]) -> _Ranges:
    found = []
    for low, high in ranges:
        if low <= _SLASH <= high:
            found += [(low, _SLASH - 1)] if low < _SLASH else []
            found += [(_SLASH + 1, high)] if high > _SLASH else []
        else:
            found.append((low, high))
    return tuple(found)
