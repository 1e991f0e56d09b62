"""What the loop itself says to the model, as user messages beside the task."""

from __future__ import annotations

from harness.record.conversation import Message

CUT_NOTICE = (
    "Your last answer was cut off or could not be read, so it was dropped. It may have reached the end of the {n_ctx}-token "
    "context. Think briefly, and change files in small steps with edit_file instead of rewriting them whole."
)
UNREADABLE = "Your last reply could not be read: {problem}. Answer again in the form that was asked for."
STILL_OPEN = "These items of your to-do list are still open; finish, cancel or replace them before you end:\n{items}"

_CUT_START = CUT_NOTICE.partition("{")[0]


def is_cut_notice(message: Message) -> bool:
    """Whether a message only says that a cut reply was dropped."""
    return message["role"] == "user" and (message.get("content") or "").startswith(_CUT_START)
