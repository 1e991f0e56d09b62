"""Loans of a lending library: who has what until when, and what being late costs."""

from dataclasses import dataclass
from datetime import date, timedelta

LOAN_DAYS = 21
MOST_RENEWALS = 2
FREE_DAYS = 2
CENTS_PER_DAY = 25
MOST_CENTS = 800


class LoanError(ValueError):
    """Something the rules of the library do not allow; the message says which."""


@dataclass
class Loan:
    """One copy in somebody's hands. due: the last day on which it may come back without a fine."""

    isbn: str
    reader: str
    taken: date
    due: date
    renewals: int = 0
    returned: date | None = None

    @property
    def open(self):
        return self.returned is None


def days_late(loan, today):
    """Days after the due date, 0 when the loan is in time. A returned loan counts until its return."""
    until = loan.returned or today
    return max(0, (until - loan.due).days)


def fine(late):
    """Cents to pay for a book that comes back `late` days after its due date."""
    if late <= FREE_DAYS:
        return 0
    return min(MOST_CENTS, (late - FREE_DAYS) * CENTS_PER_DAY)


def renew(loan, today):
    """Gives a loan more time and returns the new due date."""
    if not loan.open:
        raise LoanError(f"{loan.isbn} is back already")
    if days_late(loan, today) > 0:
        raise LoanError(f"{loan.isbn} is overdue")
    if loan.renewals >= MOST_RENEWALS:
        raise LoanError(f"{loan.isbn} was renewed {loan.renewals} times already")
    loan.renewals += 1
    loan.due = today + timedelta(days=LOAN_DAYS)
    return loan.due


class Desk:
    """The lending desk: checks out, takes back, and knows what is owed."""

    def __init__(self, catalog, most_loans=5):
        self.catalog = catalog
        self.most_loans = most_loans
        self.loans = []
        self.paid = {}

    def out(self, isbn):
        """How many copies of a book are lent at the moment."""
        return sum(1 for loan in self.loans if loan.isbn == isbn and loan.open)

    def of(self, reader):
        return [loan for loan in self.loans if loan.reader == reader and loan.open]

    def check_out(self, isbn, reader, today):
        """Lends one copy; raises LoanError when none is there, the reader has too many, or owes money."""
        book = self.catalog.get(isbn)
        if self.out(isbn) >= book.copies:
            raise LoanError(f"{book.title}: all copies are lent")
        if len(self.of(reader)) >= self.most_loans:
            raise LoanError(f"{reader} has {self.most_loans} books already")
        if self.owed(reader, today) > 0:
            raise LoanError(f"{reader} owes {self.owed(reader, today)} cents")
        loan = Loan(isbn, reader, today, today + timedelta(days=LOAN_DAYS))
        self.loans.append(loan)
        return loan

    def take_back(self, isbn, reader, today):
        """Ends a loan and returns the fine for it in cents."""
        for loan in self.of(reader):
            if loan.isbn == isbn:
                loan.returned = today
                return fine(days_late(loan, today))
        raise LoanError(f"{reader} does not have {isbn}")

    def pay(self, reader, cents):
        self.paid[reader] = self.paid.get(reader, 0) + cents

    def owed(self, reader, today):
        """Cents a reader owes: fines of all loans, open ones up to today, less what was paid."""
        fines = sum(fine(days_late(loan, today)) for loan in self.loans if loan.reader == reader)
        return max(0, fines - self.paid.get(reader, 0))
