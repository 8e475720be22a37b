"""`leasehold config`, as a user at a shell would use it."""

import pytest

from tests.cli.shell import Shell


def test_a_setting_is_changed_listed_and_reset(shell: Shell) -> None:
    assert (
        shell.run("config", "set", "default_ttl_seconds", "60").out == "default_ttl_seconds: 60 (was 3600)\n"
    )
    assert shell.run("config", "get", "default_ttl_seconds").out == "60\n"
    listed = shell.run("config", "ls").out.splitlines()
    assert listed[0].split() == ["SETTING", "VALUE", "FOR", "CHANGED", "BY"]
    assert len(listed) == 9
    assert listed[1].split()[:3] == ["default_ttl_seconds", "60", "all"]
    assert shell.run("config", "reset", "default_ttl_seconds").out == "default_ttl_seconds: 3600 (was 60)\n"


def test_a_resource_can_have_a_value_of_its_own(shell: Shell) -> None:
    shell.run("config", "set", "blocking_mode_enabled", "FALSE", "--resource", "door", "--holder", "ann")
    assert shell.run("config", "get", "blocking_mode_enabled", "--resource", "door").out == "false\n"
    found = shell.json("config", "ls")["settings"]
    assert [(one["key"], one["value"], one["changed_by"]) for one in found if one["resource"] == "door"] == [
        ("blocking_mode_enabled", False, "ann")
    ]
    assert "settings.changed" in shell.run("history").out


def test_a_value_that_is_set_already_is_not_set_again(shell: Shell) -> None:
    shell.run("config", "set", "max_renewals", "5", "--holder", "ann")
    before = shell.run("history").out
    assert shell.run("config", "set", "max_renewals", "5", "--holder", "ben").out == (
        "max_renewals: 5 (as before)\n"
    )
    assert shell.run("history").out == before


def test_json_says_what_was_in_force_before(shell: Shell) -> None:
    assert shell.json("config", "set", "max_renewals", "3") == {
        "key": "max_renewals",
        "before": -1,
        "value": 3,
        "resource": None,
    }
    assert shell.json("config", "get", "max_renewals") == {
        "key": "max_renewals",
        "value": 3,
        "resource": None,
    }


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["lst"], "there is no command 'lst'; did you mean 'ls'?"),
        (["set", "keep_history"], "required: VALUE"),
        (["set", "keep_history", "maybe"], "invalid value 'maybe': use true, false, or a whole number"),
        (["set", "keep_history", "1"], "value of keep_history must be true or false"),
        (["set", "keep_histry", "true"], "did you mean 'keep_history'?"),
        (["set", "keep_history", "true", "--resource", "x"], "keep_history is for the whole store"),
        (["get", "x"], "setting 'x' does not exist; there are default_ttl_seconds,"),
        (["ls", "--jsn"], "did you mean '--json'?"),
    ],
)
def test_what_makes_no_sense_is_answered_with_what_does(
    shell: Shell, arguments: list[str], hint: str
) -> None:
    shell.run("acquire", "something")
    assert hint in shell.run("config", *arguments, code=2).err


def test_without_a_command_the_help_is_shown(shell: Shell) -> None:
    result = shell.run("config", code=2)
    assert "usage: leasehold config" in result.err
    assert "leasehold config set default_ttl_seconds 600" in result.err
