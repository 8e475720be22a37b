"""Who uses a lease that a client keeps, and who is the last."""

from leasehold.client.users import User, Users


def test_a_lease_ends_with_its_last_user_whoever_began() -> None:
    users, first, second = Users(), User(), User()
    users.begin(["a"], first, to_end=True)
    assert users.join("a", second, is_owned=False), "before anybody keeps it"

    assert not users.leave("a", first)
    assert users.leave("a", second)
    assert users.is_to_end("a")


def test_nobody_joins_a_lease_that_its_last_user_gives_back() -> None:
    users, first, second = Users(), User(), User()
    users.begin(["a"], first, to_end=True)
    assert users.leave("a", first)

    assert not users.join("a", second, is_owned=True)
    assert users.is_ending("a")
    users.over(["a"])
    assert users.join("a", second, is_owned=False)


def test_what_somebody_owns_does_not_end_with_those_who_join() -> None:
    users, guest = Users(), User()
    assert users.join("a", guest, is_owned=True)

    assert not users.leave("a", guest)
    assert not users.is_to_end("a")


def test_who_joined_a_claim_under_its_new_id_does_not_make_it_somebodys_own() -> None:
    users, claimant, guest = Users(), User(), User()
    assert users.join("a", guest, is_owned=True), "it is kept, and not known to be claimed for blocks"
    users.begin(["a"], claimant, to_end=True)

    assert not users.leave("a", claimant)
    assert users.leave("a", guest)
    assert users.is_to_end("a")
