"""A to-do list in a JSON file.

usage: python todo.py [--file PATH] add TITLE | done NUMBER | list
"""

import argparse
import json
import sys
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
    """One printed line: number, box, title."""
    box = "[x]" if item["done"] else "[ ]"
    return f"{number}. {box} {item['title']}"


def parser():
    top = argparse.ArgumentParser(prog="todo")
    top.add_argument("--file", default="todo.json", help="where the items are kept")
    commands = top.add_subparsers(dest="command", required=True)
    add = commands.add_parser("add", help="add an item")
    add.add_argument("title")
    done = commands.add_parser("done", help="mark an item as done")
    done.add_argument("number", type=int)
    commands.add_parser("list", help="print all items")
    return top


def main(argv=None):
    """Runs one command and returns the exit code."""
    args = parser().parse_args(argv)
    items = load(args.file)
    if args.command == "add":
        items.append({"title": args.title, "done": False})
        save(args.file, items)
    elif args.command == "done":
        if not 1 <= args.number <= len(items):
            print(f"no item {args.number}", file=sys.stderr)
            return 1
        items[args.number - 1]["done"] = True
        save(args.file, items)
    else:
        for number, item in enumerate(items, 1):
            print(line(number, item))
    return 0


if __name__ == "__main__":
    sys.exit(main())
