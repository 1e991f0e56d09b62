from datetime import date

import pytest
from catalog import Book, Catalog, check_digit, is_valid, sort_key
from loans import Desk, Loan, LoanError, fine, renew
from report import late_letters, money, shelf_list

SEA = "9780306406157"
HILL = "9783161484100"
DAY = date(2026, 3, 2)


def test_check_digits():
    assert check_digit("978030640615") == 7
    assert check_digit("978-3-16-148410") == 0


def test_valid_numbers():
    assert is_valid(SEA)
    assert not is_valid("9780306406158")


def test_articles_do_not_count():
    assert sort_key("The Sea") == "sea"
    assert sorted(["The Sea", "A Hill", "Morning"], key=sort_key) == ["A Hill", "Morning", "The Sea"]


def test_copies_add_up():
    catalog = Catalog()
    catalog.add(Book(SEA, "The Sea", "Ann Low", 1999, tags={"water"}))
    catalog.add(Book(SEA, "The Sea", "Ann Low", 1999, copies=2, tags={"ships"}))
    assert len(catalog) == 1
    assert catalog.get(SEA).copies == 3
    assert catalog.get(SEA).tags == {"water", "ships"}


def a_loan(**more):
    return Loan(SEA, "Ida", DAY, date(2026, 3, 23), **more)


def test_two_days_cost_nothing():
    assert fine(0) == fine(2) == 0


def test_later_days_cost_25_cents_each():
    assert fine(3) == 25
    assert fine(10) == 200


def test_fines_have_an_end():
    assert fine(500) == 800


def test_renewal_counts_from_today():
    loan = a_loan()
    assert renew(loan, date(2026, 3, 10)) == date(2026, 3, 31)
    assert loan.renewals == 1


def test_two_renewals_at_most():
    loan = a_loan(renewals=2)
    with pytest.raises(LoanError):
        renew(loan, date(2026, 3, 10))


def test_no_renewal_when_overdue():
    with pytest.raises(LoanError):
        renew(a_loan(), date(2026, 3, 24))


def test_the_desk_lends_what_is_there():
    catalog = Catalog()
    catalog.add(Book(SEA, "The Sea", "Ann Low", 1999))
    desk = Desk(catalog)
    desk.check_out(SEA, "Ida", DAY)
    with pytest.raises(LoanError):
        desk.check_out(SEA, "Per", DAY)
    assert desk.take_back(SEA, "Ida", date(2026, 3, 27)) == 50


def library():
    catalog = Catalog()
    catalog.add(Book(SEA, "The Sea", "Ann Low", 1999, copies=2))
    catalog.add(Book(HILL, "A Hill", "Bo Ek", 2004))
    desk = Desk(catalog)
    desk.check_out(SEA, "Ida", date(2026, 3, 2))
    desk.check_out(HILL, "Ida", date(2026, 3, 4))
    return catalog, desk


def test_money():
    assert money(1205) == "12.05"


def test_shelf_list():
    catalog, desk = library()
    assert shelf_list(catalog, desk) == "A Hill | Bo Ek | 2004 | 0/1\nThe Sea | Ann Low | 1999 | 1/2"


def test_letters():
    _, desk = library()
    letter = late_letters(desk, date(2026, 3, 29))["Ida"]
    assert letter.splitlines() == [
        "Dear Ida,",
        "please bring back:",
        "- A Hill, 4 days late",
        "- The Sea, 6 days late",
        "So far that makes 1.50.",
    ]
