"""Scratchpad and to-do list in memory (published/rules.md section 8), with the one-in-progress rule enforced.

The published code only claims that one item is in progress at a time, never finds an item by a numeric id in `update`, and prints
its retry sentence with the braces in it. Here the rule is enforced, ids are text everywhere, and the sentence is filled in.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from harness.agent.tools.base import Tool, ToolError

STATUSES = ("pending", "in_progress", "done", "cancelled", "failed")
HIDDEN = ("done", "cancelled")
OPEN = ("pending", "in_progress", "failed")
RETRY_LIMIT = 3


@dataclass
class Item:
    id: str
    content: str
    status: str = "pending"
    retries: int = 0

    def line(self) -> str:
        tries = f" (retries: {self.retries})" if self.retries else ""
        return f"- [{self.status}] {self.id}: {self.content}{tries}"


@dataclass
class Plan:
    """The planning state of one run."""

    scratchpad: str = ""
    items: list[Item] = field(default_factory=list)

    def write(self, text: str) -> str:
        self.scratchpad = text.strip()
        return f"scratchpad: {len(self.scratchpad)} characters"

    def read(self) -> str:
        return self.scratchpad or "(empty)"

    def append(self, id: str, content: str, status: str = "pending") -> str:
        self._known_status(status)
        if self._find(id) is not None:
            raise ToolError(f"there is already an item {id}")
        if status == "in_progress":
            self._nothing_in_progress()
        self.items.append(Item(id, content, status))
        return f"added {id}"

    def update(self, id: str, content: str | None = None, status: str | None = None) -> str:
        item = self._find(id)
        if item is None:
            raise ToolError(f"no item {id}; items: {', '.join(i.id for i in self.items) or 'none'}")
        if content is None and status is None:
            raise ToolError("nothing to update: give content or status")
        if status is not None:
            self._known_status(status)
            if status == "in_progress" and item.status != "in_progress":
                self._nothing_in_progress()
        if content is not None:
            item.content = content
        text = f"updated {id}"
        if status is not None:
            if item.status == "failed" and status == "in_progress":
                item.retries += 1
                text += ". " + self._retry_text(item)
            item.status = status
        return text

    def listing(self, everything: bool = False) -> str:
        counts = ", ".join(f"{s}: {n}" for s in STATUSES if (n := sum(i.status == s for i in self.items)))
        head = f"{len(self.items)} items" + (f" ({counts})" if counts else "")
        return "\n".join([head] + [i.line() for i in self.items if everything or i.status not in HIDDEN])

    @property
    def open_items(self) -> list[Item]:
        return [i for i in self.items if i.status in OPEN]

    @property
    def at_retry_limit(self) -> list[Item]:
        """Unfinished items that may not be retried any more."""
        return [i for i in self.open_items if i.retries >= RETRY_LIMIT]

    def facts(self) -> dict[str, Any]:
        """The `plan` event's fields."""
        return {"items": [asdict(i) for i in self.items], "scratchpad": self.scratchpad}

    def _retry_text(self, item: Item) -> str:
        if item.retries >= RETRY_LIMIT:
            return f"Retry limit ({RETRY_LIMIT}) reached for {item.id}: do not retry it, tell the user what is needed."
        return f"This is retry {item.retries} of at most {RETRY_LIMIT}."

    def _find(self, id: str) -> Item | None:
        return next((i for i in self.items if i.id == id), None)

    def _known_status(self, status: str) -> None:
        if status not in STATUSES:
            raise ToolError(f"unknown status {status}; known: {', '.join(STATUSES)}")

    def _nothing_in_progress(self) -> None:
        busy = next((i for i in self.items if i.status == "in_progress"), None)
        if busy is not None:
            raise ToolError(f"{busy.id} is in progress; finish, fail or cancel it first")


def planning_tools(plan: Plan) -> list[Tool]:
    text = {"type": "string"}
    name = {"type": ["string", "integer"], "description": "the item's id"}
    status = {"type": "string", "enum": list(STATUSES)}

    def append(id: str | int, content: str, status: str = "pending") -> str:
        return plan.append(str(id), content, status)

    def update(id: str | int, content: str | None = None, status: str | None = None) -> str:
        return plan.update(str(id), content, status)

    def tool(name: str, about: str, parameters: dict[str, Any], run: Any, *optional: str) -> Tool:
        return Tool(name, about, parameters, run, frozenset(optional), bookkeeping=True)

    return [
        tool("scratchpad_write", "Replace the scratchpad's text.", {"text": text}, plan.write),
        tool("scratchpad_read", "Read the scratchpad.", {}, plan.read),
        tool(
            "todo_append",
            "Add an item to the to-do list.",
            {"id": name, "content": text, "status": status},
            append,
            "status",
        ),
        tool(
            "todo_update",
            "Change an item's content or status.",
            {"id": name, "content": text, "status": status},
            update,
            "content",
            "status",
        ),
        tool(
            "todo_list",
            "List the open items; with everything=true also done and cancelled ones.",
            {"everything": {"type": "boolean"}},
            plan.listing,
            "everything",
        ),
    ]
