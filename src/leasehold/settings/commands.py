"""config: what is set, and changing it."""

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from typing import TYPE_CHECKING

from leasehold.cli.connecting import add_holder_option, connected
from leasehold.cli.naming import displayed, resource
from leasehold.cli.output import Output, local_time
from leasehold.cli.parser import Commands, Group

if TYPE_CHECKING:
    from leasehold.files.names import FileName
    from leasehold.settings.catalog import Value
    from leasehold.settings.questions import SettingState

_HEADINGS = ("SETTING", "VALUE", "FOR", "CHANGED", "BY")


def add_commands(commands: Commands) -> None:
    """Add the command of this module."""
    group = commands.add_group(
        "config",
        "show or change the settings of a store",
        details="""\
A change is in force at once, in every process that uses the store, and is kept in history. Settings about
file leases can also be set for one resource; those about history and cleaning up hold for the whole store.

examples:
  leasehold config ls
  leasehold config set default_ttl_seconds 600
  leasehold config set default_ttl_seconds 60 --resource src/app.py

exit codes: 0 done · 1 error · 2 wrong usage, an unknown setting, or a value it cannot have""",
    )
    _add_looking(group)
    _add_changing(group)


def _add_looking(group: Group) -> None:
    group.add(
        "ls",
        _list,
        "list every setting, its value, and who changed it",
        details="""\
Values of single resources come last.

examples:
  leasehold config ls
  leasehold config ls --json

exit codes: 0 done · 1 error · 2 wrong usage""",
    )
    getting = group.add(
        "get",
        _get,
        "print the value of a setting that is in force",
        details="""\
For a resource without a value of its own that is the general one, and without that the default.

examples:
  leasehold config get default_ttl_seconds
  leasehold config get default_ttl_seconds --resource src/app.py

exit codes: 0 done · 1 error · 2 wrong usage, or an unknown setting""",
    )
    _add_key(getting)


def _add_changing(group: Group) -> None:
    setting = group.add(
        "set",
        _set,
        "change a setting",
        details="""\
In force at once, in every process that uses the store.

examples:
  leasehold config set auto_expire_enabled false
  leasehold config set max_renewals 5 --resource src/app.py

exit codes: 0 done · 1 error · 2 wrong usage, an unknown setting, or a value it cannot have""",
    )
    resetting = group.add(
        "reset",
        _reset,
        "let the default of a setting be in force again",
        details="""\
For a resource, the general value.

examples:
  leasehold config reset max_renewals
  leasehold config reset max_renewals --resource src/app.py

exit codes: 0 done · 1 error · 2 wrong usage, or an unknown setting""",
    )
    for parser in (setting, resetting):
        _add_key(parser)
        add_holder_option(parser, "who changes it, for history")
    setting.add_argument("value", type=_value, metavar="VALUE", help="true, false, or a whole number")


def _add_key(parser: ArgumentParser) -> None:
    parser.add_argument("key", metavar="SETTING", help="which one: `leasehold config ls` lists them")
    parser.add_argument(
        "--resource", metavar="NAME", type=resource, default="", help="only for this resource, or path"
    )


def _value(text: str) -> "Value":
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    try:
        return int(text)
    except ValueError:
        raise ArgumentTypeError(f"invalid value {text!r}: use true, false, or a whole number") from None


def _list(arguments: Namespace, out: Output) -> None:
    with connected(arguments) as client:
        found = client.settings.list()
    if out.as_json:
        from leasehold.settings.shapes import setting_shape

        out.json({"settings": [setting_shape(one) for one in found]})
        return
    out.table(_HEADINGS, [_row(one) for one in found])


def _row(one: "SettingState") -> list[str]:
    when = "-" if one.changed_at_ns is None else local_time(one.changed_at_ns)
    from leasehold.settings.catalog import SETTINGS

    everything = "store" if SETTINGS[one.key].is_store_wide else "all"
    where = displayed(one.resource) if one.resource else everything
    return [one.key, _spelled(one.value), where, when, one.changed_by or "-"]


def _get(arguments: Namespace, out: Output) -> None:
    with connected(arguments) as client:
        value = client.settings.get(arguments.key, resource=_name(arguments))
    out.answer(
        {"key": arguments.key, "value": value, "resource": arguments.resource or None}, _spelled(value)
    )


def _name(arguments: Namespace) -> "FileName":
    """Return the resource that was named, which has been read already."""
    from leasehold.files.names import FileName

    return FileName(arguments.resource, arguments.resource)


def _set(arguments: Namespace, out: Output) -> None:
    _change(arguments, out, arguments.value)


def _reset(arguments: Namespace, out: Output) -> None:
    _change(arguments, out, None)


def _change(arguments: Namespace, out: Output, value: "Value | None") -> None:
    with connected(arguments, create=True) as client:
        if value is None:
            changed = client.settings.reset(arguments.key, resource=_name(arguments))
        else:
            changed = client.settings.set(arguments.key, value, resource=_name(arguments))
    if out.as_json:
        shape = {"key": changed.key, "before": changed.before, "value": changed.value}
        out.json({**shape, "resource": changed.resource or None})
        return
    where = f" for {displayed(changed.resource)}" if changed.resource else ""
    was = "as before" if changed.before == changed.value else f"was {_spelled(changed.before)}"
    out.line(f"{changed.key}{where}: {_spelled(changed.value)} ({was})")


def _spelled(value: "Value") -> str:
    return str(value).lower()
