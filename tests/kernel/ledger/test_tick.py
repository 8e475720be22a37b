from leasehold.kernel.ledger.tick import NANOSECONDS_PER_SECOND, Tick


def test_ticks_of_one_clock_can_be_compared() -> None:
    early, late = Tick(value=10), Tick(value=25)

    assert early.comparable(late)
    assert early.until(late) == 15
    assert late.until(early) == -15
    assert early.until(early) == 0


def test_ticks_of_different_eras_say_nothing_about_each_other() -> None:
    before, after = Tick(value=10, era=1), Tick(value=25, era=2)

    assert not before.comparable(after)
    assert before.until(after) is None


def test_ticks_of_different_rates_say_nothing_about_each_other() -> None:
    fine, coarse = Tick(value=10), Tick(value=25, rate=1_000)

    assert not fine.comparable(coarse)
    assert fine.until(coarse) is None


def test_a_later_tick_is_on_the_same_clock() -> None:
    assert Tick(value=10, era=3, rate=50).after(7) == Tick(value=17, era=3, rate=50)


def test_another_tick_of_the_same_clock_differs_in_its_value_only() -> None:
    assert Tick(value=5, era=2, rate=1_000).at(3) == Tick(value=3, era=2, rate=1_000)


def test_a_tick_counts_nanoseconds_of_the_first_era_unless_it_says_otherwise() -> None:
    assert Tick(value=1) == Tick(value=1, era=1, rate=NANOSECONDS_PER_SECOND)
    assert NANOSECONDS_PER_SECOND == 1_000_000_000
