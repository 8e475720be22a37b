from typing import Any

import pytest

from leasehold.settings.catalog import SETTINGS, unknown


def test_the_catalog_has_the_settings_of_the_contract_with_their_defaults() -> None:
    assert {key: setting.default for key, setting in SETTINGS.items()} == {
        "default_ttl_seconds": 3600,
        "max_renewals": -1,
        "acquisition_timeout_ms": 30_000,
        "cleanup_interval_seconds": 300,
        "auto_expire_enabled": True,
        "blocking_mode_enabled": True,
        "keep_history": True,
        "history_retention_days": 30,
    }
    assert {key for key, setting in SETTINGS.items() if setting.is_store_wide} == {
        "keep_history",
        "history_retention_days",
        "auto_expire_enabled",
        "cleanup_interval_seconds",
    }


@pytest.mark.parametrize("setting", SETTINGS.values(), ids=SETTINGS)
def test_a_default_could_be_set(setting: Any) -> None:
    assert setting.problem_with(setting.default) is None
    assert setting.description


@pytest.mark.parametrize(
    ("key", "value", "problem"),
    [
        ("keep_history", 1, "true or false"),
        ("keep_history", "true", "true or false"),
        ("max_renewals", True, "whole number"),
        ("max_renewals", 1.0, "whole number"),
        ("max_renewals", -2, "from -1 to"),
        ("default_ttl_seconds", 0, "from 1 to 2592000"),
        ("default_ttl_seconds", 2_592_001, "from 1 to 2592000"),
        ("history_retention_days", 0, "from 1 to"),
        ("cleanup_interval_seconds", 0, "from 1 to"),
        ("acquisition_timeout_ms", -1, "from 0 to"),
    ],
)
def test_what_a_setting_cannot_be(key: str, value: object, problem: str) -> None:
    found = SETTINGS[key].problem_with(value)
    assert found is not None
    assert problem in found


def test_an_unknown_setting_is_answered_with_the_nearest_or_with_all() -> None:
    assert unknown("keep_histry") == "'keep_histry' does not exist; did you mean 'keep_history'?"
    assert all(key in unknown("x") for key in SETTINGS)


def test_a_setting_says_of_what_type_its_values_are() -> None:
    assert {one.value_type for one in SETTINGS.values() if isinstance(one.default, bool)} == {"bool"}
    assert SETTINGS["max_renewals"].value_type == "int"
