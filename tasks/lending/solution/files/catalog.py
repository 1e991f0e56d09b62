"""The catalogue of a lending library: books, their numbers and their order on the shelf."""

from dataclasses import dataclass, field

ARTICLES = ("a", "an", "the")


class CatalogError(ValueError):
    """An entry that the catalogue can't take; the message says why."""


@dataclass
class Book:
    """One title. copies: how many the library owns. tags: lower-case subject words."""

    isbn: str
    title: str
    author: str
    year: int
    copies: int = 1
    tags: set[str] = field(default_factory=set)


def check_digit(isbn):
    """The last digit that belongs to the first twelve digits of a thirteen-digit ISBN."""
    digits = [int(c) for c in isbn if c.isdigit()][:12]
    if len(digits) != 12:
        raise CatalogError(f"{isbn!r} has no twelve digits")
    total = sum(d * (1 if i % 2 == 0 else 3) for i, d in enumerate(digits))
    return (10 - total % 10) % 10


def is_valid(isbn):
    """Whether the thirteenth digit is the one that belongs there."""
    digits = [int(c) for c in isbn if c.isdigit()]
    return len(digits) == 13 and digits[12] == check_digit(isbn)


def sort_key(title):
    """What a title is sorted by: its words in lower case, without a leading article."""
    words = title.lower().split()
    return " ".join(words[1:] if words and words[0] in ARTICLES else words)


class Catalog:
    """All books by their ISBN."""

    def __init__(self):
        self._books = {}

    def __len__(self):
        return len(self._books)

    def add(self, book):
        """Adds a book, or more copies of one that is there already."""
        if not is_valid(book.isbn):
            raise CatalogError(f"{book.isbn} is no ISBN: its last digit should be {check_digit(book.isbn)}")
        if book.copies < 1:
            raise CatalogError(f"{book.title}: a book needs at least one copy")
        held = self._books.get(book.isbn)
        if held is None:
            self._books[book.isbn] = book
            return book
        held.copies += book.copies
        held.tags |= book.tags
        return held

    def get(self, isbn):
        try:
            return self._books[isbn]
        except KeyError:
            raise CatalogError(f"{isbn} is not in the catalogue") from None

    def remove(self, isbn, copies=1):
        """Takes copies out; the entry goes with its last copy."""
        book = self.get(isbn)
        if copies > book.copies:
            raise CatalogError(f"{book.title}: there are only {book.copies} copies")
        book.copies -= copies
        if book.copies == 0:
            del self._books[isbn]

    def search(self, text="", tag=None, author=None):
        """Books whose title or author has the text, in the order of the shelf."""
        text = text.lower()
        found = []
        for book in self._books.values():
            if text and text not in book.title.lower() and text not in book.author.lower():
                continue
            if tag is not None and tag.lower() not in book.tags:
                continue
            if author is not None and author.lower() != book.author.lower():
                continue
            found.append(book)
        return sorted(found, key=lambda b: (sort_key(b.title), b.year))
