"""What the library prints: the shelf list and the letters to readers who are late."""

from catalog import sort_key
from loans import days_late, fine


def money(cents):
    """Cents as a sum of money: 1250 -> '12.50'."""
    return f"{cents // 100}.{cents % 100:02d}"


def shelf_list(catalog, desk=None):
    """One line per book in the order of the shelf: title, author, year, copies that are there of all."""
    lines = []
    for book in catalog.search():
        there = book.copies - (desk.out(book.isbn) if desk else 0)
        lines.append(f"{book.title} | {book.author} | {book.year} | {there}/{book.copies}")
    return "\n".join(lines)


def late_letters(desk, today):
    """Reader -> letter, for readers with open loans that are overdue; books in the order of their titles."""
    letters = {}
    for reader in sorted({loan.reader for loan in desk.loans if loan.open}):
        late = [loan for loan in desk.of(reader) if days_late(loan, today) > 0]
        if not late:
            continue
        titles = {loan.isbn: desk.catalog.get(loan.isbn).title for loan in late}
        late.sort(key=lambda loan: sort_key(titles[loan.isbn]))
        lines = [f"Dear {reader},", "please bring back:"]
        lines += [f"- {titles[x.isbn]}, {days_late(x, today)} days late" for x in late]
        lines.append(f"So far that makes {money(sum(fine(days_late(x, today)) for x in late))}.")
        letters[reader] = "\n".join(lines)
    return letters
