"""How much may be used up: episodes, tool calls, tokens, milliseconds.

A budget limits each of them, or leaves it without a limit (None). It is exhausted when any limited part is
0; spending exactly the rest is fine. What was granted, what was spent and what was handed on to children are
kept apart, and what remains follows from them, so that a grant can be signed once and for all.
"""

import msgspec

DIMENSIONS = ("episodes", "tool_calls", "tokens", "duration_ms")
AMOUNT_MAXIMUM = 2**53 - 1
"""The largest amount in one grant or one spending, so that every language can carry it as a number."""


class Amounts(msgspec.Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """So much of each: what is spent at once, or has been."""

    episodes: int = 0
    tool_calls: int = 0
    tokens: int = 0
    duration_ms: int = 0

    def plus(self, other: "Amounts") -> "Amounts":
        """Return the sum of both, part by part."""
        return Amounts(**{name: getattr(self, name) + getattr(other, name) for name in DIMENSIONS})

    def minus(self, other: "Amounts") -> "Amounts":
        """Return the difference of both, part by part."""
        return Amounts(**{name: getattr(self, name) - getattr(other, name) for name in DIMENSIONS})

    def __str__(self) -> str:
        """Spell amounts for people; what there is nothing of is left out."""
        parts = [f"{getattr(self, name):,} {name}" for name in DIMENSIONS if getattr(self, name)]
        return ", ".join(parts) or "nothing"


class Budget(msgspec.Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """A limit for each; None: no limit."""

    episodes: int | None = None
    tool_calls: int | None = None
    tokens: int | None = None
    duration_ms: int | None = None

    def minus(self, amounts: Amounts) -> "Budget":
        """Return what is left after `amounts` are gone; what has no limit still has none."""
        left = {}
        for name in DIMENSIONS:
            limit = getattr(self, name)
            left[name] = None if limit is None else limit - getattr(amounts, name)
        return Budget(**left)

    def counted(self) -> Amounts:
        """Return the limits as amounts; what has no limit counts as nothing, because nothing is set aside."""
        return Amounts(**{name: getattr(self, name) or 0 for name in DIMENSIONS})

    def used_up(self) -> str | None:
        """Return the first part of which nothing is left; None: the budget is not exhausted."""
        return next((name for name in DIMENSIONS if getattr(self, name) == 0), None)

    def short_of(self, asked: "Amounts | Budget") -> str | None:
        """Return the first part of which less is left than asked for; None: there is enough of each."""
        for name in DIMENSIONS:
            left, wanted = getattr(self, name), getattr(asked, name)
            if left is not None and (wanted is None or wanted > left):
                return name
        return None
