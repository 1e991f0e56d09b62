"""The tools of the agent versions, put together by name."""

from __future__ import annotations

from collections.abc import Callable

from harness.agent.planning import Plan, planning_tools
from harness.agent.tools.base import Tool
from harness.agent.tools.fetch import fetch_tool
from harness.agent.tools.files import file_tools
from harness.agent.tools.search import search_tools
from harness.agent.tools.shell import Shell
from harness.agent.workspace import Workspace
from harness.record.events import EventSink
from harness.settings import AgentSettings, SettingsError


def toolbox(
    agent: AgentSettings,
    workspace: Workspace,
    shell: Shell,
    plan: Plan,
    sink: EventSink,
    on_same: Callable[[str], None],
) -> dict[str, Tool]:
    """The agent's tools by name, in the order of `agent.tools`; raises SettingsError for an unknown name."""
    made = [
        *file_tools(workspace, same_content_notice=agent.same_content_notice, on_same=on_same),
        shell.tool(),
        *search_tools(workspace),
        *planning_tools(plan),
    ]
    if agent.fetch_hosts:
        made.append(fetch_tool(agent.fetch_hosts, sink))
    by_name = {tool.name: tool for tool in made}
    unknown = [name for name in agent.tools if name not in by_name]
    if unknown:
        mend = " (fetch needs agent.fetch_hosts)" if "fetch" in unknown else ""
        raise SettingsError(f"agent.tools: no tool named {', '.join(unknown)}{mend}; known: {', '.join(by_name)}")
    return {name: by_name[name] for name in agent.tools}
