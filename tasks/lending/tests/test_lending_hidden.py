from datetime import date

import pytest
from catalog import Book, Catalog, CatalogError, check_digit, is_valid, sort_key
from loans import Desk, Loan, LoanError, days_late, fine, renew
from report import late_letters, money, shelf_list

WALK = "9781402894626"
SONG = "9780131103627"


@pytest.mark.parametrize(
    ("digits", "expected"),
    [("978140289462", 6), ("978013110362", 7), ("979103200011", 3), ("000000000000", 0), ("978-0-13-110362", 7)],
)
def test_check_digit(digits, expected):
    assert check_digit(digits) == expected


def test_numbers_are_checked():
    assert is_valid(WALK)
    assert is_valid("978-1-4028-9462-6")
    assert not is_valid("9781402894627")
    assert not is_valid("140289462")
    with pytest.raises(CatalogError):
        check_digit("12345")


@pytest.mark.parametrize(
    ("title", "expected"),
    [
        ("An Evening Walk", "evening walk"),
        ("THE SEA", "sea"),
        ("a Hill", "hill"),
        ("Another Day", "another day"),
        ("Theory", "theory"),
        ("Over the Hills", "over the hills"),
        ("", ""),
    ],
)
def test_sort_key(title, expected):
    assert sort_key(title) == expected


@pytest.mark.parametrize(
    ("late", "cents"), [(0, 0), (1, 0), (2, 0), (3, 25), (7, 125), (33, 775), (34, 800), (35, 800), (400, 800)]
)
def test_fine(late, cents):
    assert fine(late) == cents


def a_loan(**more):
    return Loan(WALK, "Uma", date(2026, 5, 1), date(2026, 5, 22), **more)


def test_renewal_counts_from_the_day_of_renewal():
    loan = a_loan()
    assert renew(loan, date(2026, 5, 5)) == date(2026, 5, 26)
    assert loan.due == date(2026, 5, 26)
    assert renew(loan, date(2026, 5, 26)) == date(2026, 6, 16)
    assert loan.renewals == 2


def test_a_third_renewal_is_refused_and_changes_nothing():
    loan = a_loan(renewals=2)
    with pytest.raises(LoanError):
        renew(loan, date(2026, 5, 5))
    assert (loan.renewals, loan.due) == (2, date(2026, 5, 22))


def test_an_overdue_loan_is_not_renewed_and_stays_as_it_was():
    loan = a_loan()
    with pytest.raises(LoanError):
        renew(loan, date(2026, 5, 23))
    assert (loan.renewals, loan.due) == (0, date(2026, 5, 22))


def test_a_returned_loan_is_not_renewed():
    with pytest.raises(LoanError):
        renew(a_loan(returned=date(2026, 5, 3)), date(2026, 5, 5))


def test_on_the_due_day_it_is_still_in_time():
    assert days_late(a_loan(), date(2026, 5, 22)) == 0
    assert days_late(a_loan(returned=date(2026, 5, 24)), date(2026, 6, 30)) == 2


def test_the_desk_and_its_letters():
    catalog = Catalog()
    catalog.add(Book(WALK, "An Evening Walk", "Cy Moor", 2011, copies=2))
    catalog.add(Book(SONG, "Songs", "Di Park", 1980))
    desk = Desk(catalog)
    desk.check_out(SONG, "Uma", date(2026, 5, 1))
    desk.check_out(WALK, "Uma", date(2026, 5, 4))
    assert shelf_list(catalog, desk).splitlines() == [
        "An Evening Walk | Cy Moor | 2011 | 1/2",
        "Songs | Di Park | 1980 | 0/1",
    ]
    assert late_letters(desk, date(2026, 5, 20)) == {}
    assert late_letters(desk, date(2026, 5, 29))["Uma"].splitlines()[2:] == [
        "- An Evening Walk, 4 days late",
        "- Songs, 7 days late",
        "So far that makes 1.75.",
    ]
    assert desk.owed("Uma", date(2026, 5, 29)) == 175
    with pytest.raises(LoanError):
        desk.check_out(WALK, "Uma", date(2026, 5, 29))
    assert desk.take_back(SONG, "Uma", date(2026, 5, 29)) == 125
    desk.pay("Uma", 175)
    assert desk.owed("Uma", date(2026, 5, 29)) == 0
    assert money(175) == "1.75"
