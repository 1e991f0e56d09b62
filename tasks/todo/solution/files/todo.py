"""A to-do list in a JSON file.

usage: python todo.py [--file PATH] add TITLE [--due YYYY-MM-DD] | done NUMBER | list [--overdue]
"""

import argparse
import json
import sys
from datetime import date
from pathlib import Path


def load(path):
    """The items of a file, [] when there is no file yet."""
    path = Path(path)
    if not path.exists():
        return []
    return json.loads(path.read_text(encoding="utf-8"))


def save(path, items):
    Path(path).write_text(json.dumps(items, indent=2) + "\n", encoding="utf-8")


def line(number, item):
    """One printed line: number, box, title and the due date if there is one."""
    box = "[x]" if item["done"] else "[ ]"
    due = f" {item['due']}" if item.get("due") else ""
    return f"{number}. {box} {item['title']}{due}"


def day(text):
    """A date given as YYYY-MM-DD; argparse turns the ValueError of a bad one into an error message."""
    if len(text) != 10:
        raise ValueError(text)
    return date.fromisoformat(text)


def overdue(item, today):
    return not item["done"] and bool(item.get("due")) and date.fromisoformat(item["due"]) < today


def parser():
    top = argparse.ArgumentParser(prog="todo")
    top.add_argument("--file", default="todo.json", help="where the items are kept")
    commands = top.add_subparsers(dest="command", required=True)
    add = commands.add_parser("add", help="add an item")
    add.add_argument("title")
    add.add_argument("--due", type=day, metavar="YYYY-MM-DD", help="when it is due")
    done = commands.add_parser("done", help="mark an item as done")
    done.add_argument("number", type=int)
    listing = commands.add_parser("list", help="print the items")
    listing.add_argument("--overdue", action="store_true", help="only what is not done and past due")
    return top


def main(argv=None, today=None):
    """Runs one command and returns the exit code. `today` is a date, the real one by default."""
    args = parser().parse_args(argv)
    items = load(args.file)
    if args.command == "add":
        item = {"title": args.title, "done": False}
        if args.due:
            item["due"] = args.due.isoformat()
        items.append(item)
        save(args.file, items)
    elif args.command == "done":
        if not 1 <= args.number <= len(items):
            print(f"no item {args.number}", file=sys.stderr)
            return 1
        items[args.number - 1]["done"] = True
        save(args.file, items)
    else:
        today = today or date.today()
        for number, item in enumerate(items, 1):
            if not args.overdue or overdue(item, today):
                print(line(number, item))
    return 0


if __name__ == "__main__":
    sys.exit(main())
