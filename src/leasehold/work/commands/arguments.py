"""What several commands about work take."""

import argparse
from argparse import ArgumentParser

EXIT_CODES_OF_TOKENS = "0 done · 76 the token is not that of the offset in flight · 1 error · 2 wrong usage"


def read_offset(text: str) -> int:
    """Return an offset that was given; refuse what is none."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"invalid offset {text!r}: must be a whole number from 0 on")
    return int(text)


def read_number(text: str) -> int:
    """Return a number that was given; refuse what is none."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"invalid number {text!r}: must be a whole number from 0 on")
    return int(text)


def add_domain(parser: ArgumentParser) -> None:
    """Let the user name the domain."""
    parser.add_argument("domain", metavar="DOMAIN", help="the domain, as any name")


def add_token(parser: ArgumentParser) -> None:
    """Let the user show the token."""
    parser.add_argument("token", metavar="TOKEN", help="the token, as acquire printed it")


def add_retries(parser: ArgumentParser, otherwise: str) -> None:
    """Let the user say how often to try again."""
    parser.add_argument(
        "--max-retries",
        type=read_number,
        metavar="N",
        help=f"how often an offset may fail and still be tried again (default: {otherwise})",
    )
