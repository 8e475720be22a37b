import sqlite3

import pytest

from leasehold import InvalidInput
from leasehold.certificates.errors import StaleToken
from leasehold.enforcing import check_written, fenced_update, fenced_upsert


@pytest.fixture
def database() -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.execute("CREATE TABLE report (name TEXT PRIMARY KEY, text TEXT, pages INTEGER, fence INTEGER)")
    return connection


def test_the_update_is_the_one_that_the_docs_show() -> None:
    assert fenced_update("report", ["text", "pages"], key="name") == (
        "UPDATE report SET text = :text, pages = :pages, fence = :token "
        "WHERE name = :name AND fence <= :token"
    )


def test_an_update_with_an_older_token_changes_nothing_and_is_told(database: sqlite3.Connection) -> None:
    database.execute("INSERT INTO report VALUES ('r', 'empty', 0, 0)")
    statement = fenced_update("report", ["text", "pages"], key="name")
    for token, text in ((7, "new"), (7, "newer")):
        written = database.execute(statement, {"name": "r", "text": text, "pages": 1, "token": token})
        check_written(written.rowcount, resource="r", token=token)
    late = database.execute(statement, {"name": "r", "text": "late", "pages": 9, "token": 6})
    with pytest.raises(StaleToken) as refused:
        check_written(late.rowcount, resource="r", token=6)
    assert (refused.value.resource, refused.value.token) == ("r", 6)
    assert database.execute("SELECT * FROM report").fetchall() == [("r", "newer", 1, 7)]
    database.close()


def test_an_upsert_makes_the_row_and_then_guards_it(database: sqlite3.Connection) -> None:
    statement = fenced_upsert("report", ["text"], key="name")
    counts = [
        database.execute(statement, {"name": "r", "text": text, "token": token}).rowcount
        for token, text in ((5, "first"), (7, "second"), (6, "late"))
    ]
    assert counts == [1, 1, 0]
    assert database.execute("SELECT text, fence FROM report").fetchall() == [("second", 7)]
    database.close()


def test_the_fence_may_have_another_name_and_the_table_a_schema() -> None:
    statement = fenced_update("app.report", ["text"], key="id", fence="token_seen")
    assert statement == (
        "UPDATE app.report SET text = :text, token_seen = :token WHERE id = :id AND token_seen <= :token"
    )


@pytest.mark.parametrize("name", ["", "a b", "a;b", "a--", 'a"b', "1a", "a.b.c", "naïve", "a=1"])
def test_a_name_that_could_carry_sql_is_refused(name: str) -> None:
    for table, columns, key, fence in (
        (name, ["a"], "b", "c"),
        ("t", [name], "b", "c"),
        ("t", ["a"], name, "c"),
        ("t", ["a"], "b", name),
    ):
        for make in (fenced_update, fenced_upsert):
            with pytest.raises(InvalidInput):
                make(table, columns, key=key, fence=fence)
