"""What operators and containers do to files gives no token to two holders, and loses no grant in silence.

The first tests are the ways in which that was once possible, one by one. `test_matrix` has what can be done
to each file, and `test_defects` what is done to the content of the database.
"""

import os
import shutil
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest

from leasehold.stores.sqlite import files
from tests.stores.sqlite.theatre.stage import Actor, Answer, Stage

ANN, MALLORY, GROUP = 60_001, 60_002, 60_003
"""Users of a group store, whom the machine need not know."""


def engaged(stage: Stage, name: str, place: Path, **options: Any) -> Actor:
    """Somebody who has the store open."""
    actor = stage.engage(name)
    actor.does("connect", place=str(place), **options)
    return actor


def token(actor: Actor, resource: str = "door") -> int:
    """Hold something."""
    granted: int = actor.does("acquire", resource=resource)["token"]
    return granted


def token_at(stage: Stage, place: Path, resource: str = "door") -> int:
    """Hold something for a moment, and leave."""
    actor = engaged(stage, "somebody", place)
    granted = token(actor, resource)
    actor.does("release", resource=resource)
    actor.does("close")
    return granted


def reasons(actor: Actor) -> list[str]:
    """Why the store has begun new epochs."""
    return [reason for _, reason in actor.does("facts")["raises"]]


def connecting(stage: Stage, place: Path) -> Answer:
    """What a newcomer is told."""
    return stage.engage("newcomer").tries("connect", place=str(place))


def is_refused(answer: Answer, *words: str) -> bool:
    return answer.error in ("STORE_UNUSABLE", "STORE_DAMAGED", "STORE_REPLACED") and all(
        word in answer.message for word in words
    )


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "leases"


@pytest.mark.root
def test_a_database_that_is_mounted_alone_elsewhere_is_not_a_store(
    stage: Stage, place: Path, tmp_path: Path
) -> None:
    ann = engaged(stage, "ann", place)
    token(ann)
    app = tmp_path / "app"
    app.mkdir()
    (app / files.DATABASE).touch()
    stage.bind(place / files.DATABASE, app / files.DATABASE)
    assert is_refused(connecting(stage, app))
    assert is_refused(connecting(stage, app / files.DATABASE))
    assert [file.name for file in app.iterdir()] == [files.DATABASE], "nothing was made beside it"
    ann.does("renew", resource="door")
    assert ann.does("verify") == []


def test_who_loses_log_and_shared_memory_in_use_never_writes_beside_somebody_else(
    stage: Stage, place: Path
) -> None:
    token_at(stage, place, "attic")
    ann, bob = engaged(stage, "ann", place), engaged(stage, "bob", place)
    first = token(ann)
    (place / files.LOG).unlink()
    (place / files.SHARED_MEMORY).unlink()
    assert is_refused(connecting(stage, place), files.LOG, "is missing")
    assert is_refused(ann.tries("renew", resource="door"), files.LOG, "another process has the store open")
    assert token(bob, "window") > first, "the last one inside may begin a new epoch"
    assert "log lost" in reasons(bob)[0]
    assert ann.tries("renew", resource="door").error in (None, "LEASE_NOT_FOUND"), "kept, or told"
    assert bob.does("verify") == []


def test_a_database_that_is_removed_in_use_is_not_made_anew(
    stage: Stage, place: Path, tmp_path: Path
) -> None:
    ann = engaged(stage, "ann", place)
    first = token(ann)
    saved = tmp_path / "saved"
    stage.engage("olga").does("backup", place=str(place), file=str(saved))
    (place / files.DATABASE).unlink()
    assert is_refused(connecting(stage, place), files.DATABASE, "is missing")
    assert is_refused(ann.tries("renew", resource="door"), files.DATABASE)
    ann.dies()
    assert is_refused(connecting(stage, place), files.DATABASE, "restore"), "also when nobody is left"
    assert not (place / files.DATABASE).exists()
    stage.engage("olga").does("restore", file=str(saved), place=str(place))
    later = engaged(stage, "later", place)
    assert token(later, "window") > first
    assert later.tries("acquire", resource="door").error == "HELD", "as the backup says"


def test_a_database_that_is_moved_away_from_a_hot_log_is_not_a_store(stage: Stage, place: Path) -> None:
    ann = engaged(stage, "ann", place)
    token(ann)
    ann.dies()
    (place / files.DATABASE).rename(place / "moved.db")
    assert is_refused(connecting(stage, place), files.DATABASE, "is missing")
    assert is_refused(connecting(stage, place / "moved.db"))
    (place / "moved.db").rename(place / files.DATABASE)
    later = engaged(stage, "later", place)
    assert later.tries("acquire", resource="door").error == "HELD", "and nothing was lost meanwhile"


@pytest.mark.parametrize("is_cut", [False, True])
def test_a_hot_log_that_is_lost_begins_a_new_epoch(stage: Stage, place: Path, is_cut: bool) -> None:
    token_at(stage, place, "attic")
    first = lose_log(stage, place, is_cut=is_cut)
    later = engaged(stage, "later", place)
    assert "log lost" in reasons(later)[0]
    assert token(later) > first, "the grant is forgotten, and its token does not come again"
    assert later.does("verify") == []


@pytest.mark.parametrize("is_cut", [False, True])
def test_a_hot_log_that_had_all_of_the_ledger_is_not_replaced_by_a_new_ledger(
    stage: Stage, place: Path, is_cut: bool
) -> None:
    lose_log(stage, place, is_cut=is_cut)
    assert is_refused(connecting(stage, place), "the ledger is empty", "restore")


def lose_log(stage: Stage, place: Path, *, is_cut: bool) -> int:
    """Lose what ann was granted; return her token."""
    ann = engaged(stage, "ann", place)
    granted = token(ann)
    ann.dies()
    if is_cut:
        os.truncate(place / files.LOG, 0)
    else:
        (place / files.LOG).unlink()
    return granted


def test_a_log_that_is_cut_short_begins_a_new_epoch(stage: Stage, place: Path) -> None:
    ann = engaged(stage, "ann", place)
    before = (place / files.LOG).stat().st_size
    first = token(ann)
    ann.dies()
    os.truncate(place / files.LOG, before)
    later = engaged(stage, "later", place)
    assert reasons(later) == ["history lost"]
    assert token(later) > first
    assert later.does("verify") == []


def test_a_database_that_is_replaced_beside_a_hot_log_is_refused(
    stage: Stage, place: Path, tmp_path: Path
) -> None:
    ann = engaged(stage, "ann", place)
    shutil.copy(place / files.DATABASE, tmp_path / "old")
    token(ann)
    ann.dies()
    (tmp_path / "old").rename(place / files.DATABASE)
    assert is_refused(connecting(stage, place), files.DATABASE, "is not what this store was used with")


@pytest.mark.parametrize("is_hot", [False, True])
def test_a_hot_log_of_another_store_is_not_mixed_in(
    stage: Stage, place: Path, tmp_path: Path, is_hot: bool
) -> None:
    other = tmp_path / "other"
    for folder in (place, other):
        token_at(stage, folder, "attic")
        actor = engaged(stage, "ann", folder)
        token(actor)
        if folder == other or is_hot:
            actor.dies()
        else:
            actor.does("close")
    (other / files.LOG).rename(place / files.LOG)
    assert is_refused(connecting(stage, place), files.LOG, "is not what this store was used with")


def test_the_same_backup_restored_twice_repeats_no_token(stage: Stage, place: Path, tmp_path: Path) -> None:
    saved, olga = tmp_path / "saved", stage.engage("olga")
    given = [token_at(stage, place)]
    olga.does("backup", place=str(place), file=str(saved))
    for _ in range(3):
        given.append(token_at(stage, place))
        shutil.rmtree(place)
        olga.does("restore", file=str(saved), place=str(place))
    given.append(token_at(stage, place))
    assert given == sorted(set(given))


@pytest.mark.parametrize("damage", ["cut", "overwritten", "removed", "identity"])
def test_a_restore_over_a_damaged_store_goes_above_what_that_had_given_out(
    stage: Stage, place: Path, tmp_path: Path, damage: str
) -> None:
    saved, olga = tmp_path / "saved", stage.engage("olga")
    token_at(stage, place)
    olga.does("backup", place=str(place), file=str(saved))
    # A restore begins an epoch that only the present store knows of.
    olga.does("restore", file=str(saved), place=str(place))
    lost = token_at(stage, place)
    database = place / files.DATABASE
    match damage:
        case "cut":
            os.truncate(database, 5000)
        case "overwritten":
            database.write_bytes(b"\xff" * database.stat().st_size)
        case "removed":
            database.unlink()
        case _:
            (place / files.IDENTITY).write_bytes(b"")
    olga.does("restore", file=str(saved), place=str(place))
    later = engaged(stage, "later", place)
    assert token(later) > lost
    assert later.does("verify") == []


def test_a_restore_repeats_no_token_of_a_copy_that_was_used_elsewhere(
    stage: Stage, place: Path, tmp_path: Path
) -> None:
    saved, copy, olga = tmp_path / "saved", tmp_path / "copy", stage.engage("olga")
    given = [token_at(stage, place)]
    olga.does("backup", place=str(place), file=str(saved))
    subprocess.run(["cp", "-a", place, copy], check=True)
    given.append(token_at(stage, copy))
    given.append(token_at(stage, place))
    olga.does("restore", file=str(saved), place=str(place))
    given.append(token_at(stage, place))
    given.append(token_at(stage, copy))
    assert len(set(given)) == len(given)
    assert given[1] > given[0], "a copy goes above what it was copied from"
    assert given[3] > given[2] > given[0], "and so does what was restored"


@pytest.mark.root
@pytest.mark.parametrize(
    "name", [files.WRITER, files.TURNSTILE, files.IDENTITY, files.LOG, files.SHARED_MEMORY]
)
@pytest.mark.parametrize("is_inside", [False, True])
def test_a_member_of_the_group_gets_at_nobodys_key_with_a_link(
    stage: Stage, public_folder: Path, name: str, is_inside: bool
) -> None:
    ann, mallory = stage.engage("ann"), stage.engage("mallory")
    for actor, user in ((ann, ANN), (mallory, MALLORY)):
        home = public_folder / actor.name
        home.mkdir()
        actor.does("connect", place=str(home / "own"))  # which loads what cannot be loaded as a stranger
        actor.does("acquire", resource="door")
        actor.does("close")
        os.chown(home, user, GROUP)
        home.chmod(0o755)
        actor.does("become", user=user, group=GROUP)
    place = public_folder / "ann" / "leases"
    ann.does("connect", place=str(place), group=True)
    token(ann)
    mallory.does("connect", place=str(place), group=True)
    token(mallory, "window")
    mallory.does("close")
    (key,) = [file for file in (place / files.KEYS).iterdir() if file.stat().st_uid == ANN]
    before = key.read_bytes()
    if not is_inside:
        ann.does("close")
    mallory.does("link", target=str(key), name=str(place / name))
    assert is_refused(ann.tries("acquire", resource="gate") if is_inside else connecting_as(ann, place))
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert key.read_bytes() == before
    assert mallory.tries("read", file=str(key)).value is None


def connecting_as(actor: Actor, place: Path) -> Answer:
    return actor.tries("connect", place=str(place), group=True)


@pytest.mark.root
def test_two_mounts_of_one_folder_are_one_store(stage: Stage, place: Path, tmp_path: Path) -> None:
    ann = engaged(stage, "ann", place)
    first = token(ann)
    seen = [tmp_path / "first", tmp_path / "second"]
    for folder in seen:
        folder.mkdir()
        stage.bind(place, folder)
    bob, cleo = (engaged(stage, name, folder) for name, folder in zip(("bob", "cleo"), seen, strict=True))
    assert bob.tries("acquire", resource="door").error == "HELD"
    second, third = token(bob, "window"), token(cleo, "gate")
    assert first < second < third
    assert ann.tries("acquire", resource="gate").error == "HELD"
    ann.does("renew", resource="door")
    assert reasons(ann) == []


@pytest.mark.root
@pytest.mark.parametrize("is_inside", [False, True])
def test_a_folder_into_which_each_file_is_mounted_by_itself_is_not_a_store(
    stage: Stage, place: Path, tmp_path: Path, is_inside: bool
) -> None:
    ann = engaged(stage, "ann", place)
    token(ann)
    if not is_inside:
        ann.does("close")
    app = tmp_path / "app"
    app.mkdir(0o700)
    for name in files.ALL:
        (app / name).touch()
        stage.bind(place / name, app / name)
    assert is_refused(connecting(stage, app), "is mounted by itself")
    assert engaged(stage, "later", place).tries("acquire", resource="door").error == "HELD"


@pytest.mark.root
def test_containers_of_one_image_are_copies_that_share_no_token(
    stage: Stage, place: Path, tmp_path: Path
) -> None:
    given = [token_at(stage, place)]
    folders = [stage.overlay(tmp_path, Path(f"{tmp_path}-{number}")) / place.name for number in (1, 2)]
    inside = [engaged(stage, "ann", folder) for folder in folders]
    given += [token(actor) for actor in inside]
    assert [reasons(actor) for actor in inside] == [["copied"], ["copied"]]
    for actor in inside:
        actor.does("renew", resource="door")
    more = [engaged(stage, "bob", folder) for folder in folders]
    given += [token(actor, "window") for actor in more]
    given += [token(actor, "gate") for actor in inside]
    given.append(token_at(stage, place))
    assert len(set(given)) == len(given)
    assert [actor.does("verify") for actor in more] == [[], []]


def test_a_folder_that_is_renamed_in_use_is_not_mixed_up_with_the_next(
    stage: Stage, place: Path, tmp_path: Path
) -> None:
    ann = engaged(stage, "ann", place)
    first = token(ann)
    place.rename(tmp_path / "renamed")
    bob = engaged(stage, "bob", place)
    assert token(bob) > first
    assert not ann.tries("renew", resource="door").went_well
    cleo = engaged(stage, "cleo", tmp_path / "renamed")
    assert cleo.tries("acquire", resource="door").error == "HELD"
    assert reasons(cleo) == [], "moved as a whole, it has lost nothing"


@pytest.mark.parametrize("is_killed", [False, True])
def test_a_copy_of_a_folder_in_use_is_another_store_with_higher_tokens(
    stage: Stage, place: Path, tmp_path: Path, is_killed: bool
) -> None:
    copy = tmp_path / "copy"
    ann = engaged(stage, "ann", place)
    given = [token(ann)]
    subprocess.run(["cp", "-a", place, copy], check=True)
    if is_killed:
        ann.dies()
        ann = engaged(stage, "ann", place)
    given.append(token(ann, "window"))
    bob = engaged(stage, "bob", copy)
    assert reasons(bob)[0] == "copied"
    assert bob.tries("acquire", resource="door").error == "HELD"
    higher = token(bob, "window")
    assert higher > max(given)
    given += [higher, token(ann, "gate"), token(bob, "gate")]
    assert len(set(given)) == len(given)
    assert [actor.does("verify") for actor in (ann, bob)] == [[], []]


@pytest.mark.parametrize("with_log", [False, True])
@pytest.mark.parametrize("is_inside", [False, True])
def test_older_content_written_into_the_files_begins_a_new_epoch_or_is_refused(
    stage: Stage, place: Path, with_log: bool, is_inside: bool
) -> None:
    names = (files.DATABASE, files.LOG) if with_log else (files.DATABASE,)
    token_at(stage, place, "attic")
    older = {name: (place / name).read_bytes() for name in names}
    ann = engaged(stage, "ann", place)
    given = [token(ann), token(ann, "window")]
    if not is_inside:
        ann.does("close")
    for name, content in older.items():
        with (place / name).open("r+b") as file:  # as rsync --inplace does
            file.write(content)
            file.truncate()
    if is_inside:
        answer = ann.tries("acquire", resource="gate")
        if answer.went_well:
            given.append(answer.value["token"])
        ann.does("close")
    later = stage.engage("later")
    answer = later.tries("connect", place=str(place))
    if not answer.went_well:
        assert is_refused(answer)
        return
    if not reasons(later):  # The log had all that was overwritten.
        assert [later.tries("acquire", resource=one).error for one in ("door", "window")] == ["HELD"] * 2
    assert token(later, "hall") > max(given)
    assert later.does("verify") == []


@pytest.mark.parametrize("name", [files.WRITER, files.TURNSTILE])
def test_a_lock_that_is_removed_while_a_writer_is_inside_lets_nobody_in_beside_it(
    stage: Stage, place: Path, name: str
) -> None:
    ann, bob = engaged(stage, "ann", place), engaged(stage, "bob", place)
    first = token(ann)
    ann.does("begin_to_write")
    (place / name).unlink()
    bob.begins("acquire", resource="window")
    assert is_refused(connecting(stage, place), name, "is missing")
    ann.does("end_writing")
    assert is_refused(bob.ends(), name, "another process has the store open")
    second = token(ann, "gate")  # The last one inside may make the lock anew.
    assert second > first
    assert token(bob, "window") > second
    assert bob.tries("acquire", resource="gate").error == "HELD"


def test_keys_that_are_swapped_between_two_stores_seal_nothing(
    stage: Stage, place: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    for folder in (place, other):
        token_at(stage, folder)
    (place / files.KEYS).rename(tmp_path / "keys")
    (other / files.KEYS).rename(place / files.KEYS)
    (tmp_path / "keys").rename(other / files.KEYS)
    for folder in (place, other):
        actor = engaged(stage, "ann", folder)
        token(actor)
        (problem,) = actor.does("verify")
        assert "which no admitted key vouches for" in problem


@pytest.mark.parametrize("is_inside", [False, True])
@pytest.mark.parametrize("how", ["cp -a", "cp -a --remove-destination"])
def test_an_older_copy_of_the_folder_copied_over_it_repeats_no_token(
    stage: Stage, place: Path, tmp_path: Path, how: str, is_inside: bool
) -> None:
    token_at(stage, place, "attic")
    subprocess.run(["cp", "-a", place, tmp_path / "old"], check=True)
    ann = engaged(stage, "ann", place)
    given = [token(ann), token(ann, "window")]
    if not is_inside:
        ann.does("close")
    subprocess.run([*how.split(), f"{tmp_path}/old/.", place], check=True)
    if is_inside:
        answer = ann.tries("acquire", resource="gate")
        if answer.went_well:
            given.append(answer.value["token"])
        ann.does("close")
    later = stage.engage("later")
    answer = later.tries("connect", place=str(place))
    if not answer.went_well:
        assert is_refused(answer)
        return
    assert reasons(later)
    given += [token(later, "hall"), token(later, "roof")]
    assert given == sorted(set(given))
    assert later.does("verify") == []
