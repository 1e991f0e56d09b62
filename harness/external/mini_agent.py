"""mini-swe-agent for one task, with one of its own configurations; runs where the package mini-swe-agent is installed.

    python mini_agent.py --task-file TASK.md --base-url http://127.0.0.1:8080/v1 --model NAME [--config mini_textbased.yaml] …

Its own command line asks questions, keeps settings in the home folder and ends with status 0 whatever happened. Here the status is
0 only when the agent has submitted. Nothing of the agent is changed: prompts, loop, parsing and shell are the package's.
"""

import argparse
import sys
from pathlib import Path

from minisweagent.agents.default import DefaultAgent
from minisweagent.config import get_config_from_spec
from minisweagent.environments.local import LocalEnvironment
from minisweagent.models import get_model


def main():
    parser = argparse.ArgumentParser()
    for name in ("task-file", "base-url", "model"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--config", default="mini_textbased.yaml", help="for tool calls: mini.yaml")
    parser.add_argument("--model-class", default="litellm_textbased", help="for tool calls: litellm")
    parser.add_argument("--temperature", type=float, default=0.6)
    for name in ("seed", "max-tokens"):
        parser.add_argument(f"--{name}", type=int, default=0)
    args = parser.parse_args()
    config = get_config_from_spec(args.config)
    model = config.get("model", {}) | {"model_class": args.model_class, "model_name": f"openai/{args.model}"}
    model["cost_tracking"] = "ignore_errors"
    model["model_kwargs"] = model.get("model_kwargs", {}) | {
        "api_base": args.base_url,
        "api_key": "none",
        "temperature": args.temperature,
        "seed": args.seed,
        "max_retries": 0,
        **({"max_tokens": args.max_tokens} if args.max_tokens else {}),
    }
    agent = DefaultAgent(get_model(config=model), LocalEnvironment(**config.get("environment", {})), **config["agent"])
    ended = agent.run(Path(args.task_file).read_text())
    for message in agent.messages:
        print(f"--- {message.get('role')}\n{message.get('content')}")
    if ended.get("exit_status") != "Submitted":
        sys.exit(f"not submitted: {ended.get('exit_status')}")


if __name__ == "__main__":
    main()
