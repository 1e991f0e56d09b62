"""The documents the double answers with, field by field those of llama-server (autumn 2026)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from harness.serving.scripted import template
from harness.serving.scripted.ids import call_id, reply_id
from harness.serving.scripted.parsing import Parsed
from harness.serving.scripted.timing import RequestTimes
from harness.serving.scripted.tokenizer import VOCABULARY, pieces

BUILD = "b0-scripted"
# No real date: a run gives the same answers whenever it is made.
_EPOCH = 1_767_225_600

_SAMPLING: dict[str, Any] = {
    "seed": 4294967295,
    "temperature": 0.800000011920929,
    "dynatemp_range": 0.0,
    "dynatemp_exponent": 1.0,
    "top_k": 40,
    "top_p": 0.949999988079071,
    "min_p": 0.05000000074505806,
    "top_n_sigma": -1.0,
    "xtc_probability": 0.0,
    "xtc_threshold": 0.10000000149011612,
    "typical_p": 1.0,
    "repeat_last_n": 64,
    "repeat_penalty": 1.0,
    "presence_penalty": 0.0,
    "frequency_penalty": 0.0,
    "dry_multiplier": 0.0,
    "dry_base": 1.75,
    "dry_allowed_length": 2,
    "dry_penalty_last_n": 64,
    "mirostat": 0,
    "mirostat_tau": 5.0,
    "mirostat_eta": 0.10000000149011612,
    "adaptive_target": -1.0,
    "adaptive_decay": 0.8999999761581421,
    "max_tokens": -1,
    "n_predict": -1,
    "n_keep": 0,
    "n_discard": 0,
    "ignore_eos": False,
    "stream": False,
    "n_probs": 0,
    "min_keep": 0,
    "chat_format": "Content-only",
    "reasoning_format": "none",
    "reasoning_in_content": False,
    "generation_prompt": "",
    "samplers": ["penalties", "dry", "top_n_sigma", "top_k", "typ_p", "top_p", "min_p", "xtc", "temperature"],
    "speculative.types": "none",
    "timings_per_token": False,
    "post_sampling_probs": False,
    "backend_sampling": False,
    "lora": [],
}


def props(model: str, n_ctx: int) -> dict[str, Any]:
    """GET /props."""
    return {
        "default_generation_settings": {"params": _SAMPLING, "n_ctx": n_ctx},
        "total_slots": 1,
        "model_alias": model,
        "model_ftype": "scripted",
        "model_path": model,
        "modalities": {"vision": False, "video": False, "audio": False},
        "media_marker": "<__media__>",
        "endpoint_slots": True,
        "endpoint_props": False,
        "endpoint_metrics": False,
        "ui": False,
        "ui_settings": {},
        "chat_template": template.source(),
        "chat_template_caps": {
            "supports_object_arguments": True,
            "supports_parallel_tool_calls": True,
            "supports_preserve_reasoning": True,
            "supports_reasoning_effort": False,
            "supports_string_content": True,
            "supports_system_role": True,
            "supports_tool_calls": True,
            "supports_tools": True,
            "supports_typed_content": False,
        },
        "bos_token": "<|im_start|>",
        "eos_token": "<|im_end|>",
        "build_info": BUILD,
        "is_sleeping": False,
        "cors_proxy_enabled": False,
    }


def params(body: dict[str, Any], limit: int) -> dict[str, Any]:
    """The sampling parameters of a request, as GET /slots shows them."""
    given = {
        name: float(body[name]) if isinstance(_SAMPLING[name], float) else body[name]
        for name in _SAMPLING
        if name in body and isinstance(body[name], (int, float)) and not isinstance(body[name], bool)
    }
    chat = {
        "max_tokens": limit,
        "n_predict": limit,
        "stream": bool(body.get("stream", False)),
        "chat_format": "peg-native",
        "reasoning_format": "deepseek",
        "generation_prompt": template.GENERATION_PROMPT,
    }
    return _SAMPLING | given | chat


def slots(n_ctx: int, task: int | None, held: int, sampling: dict[str, Any]) -> list[dict[str, Any]]:
    """GET /slots; before the first request a slot tells no more than its size."""
    slot: dict[str, Any] = {"id": 0, "n_ctx": n_ctx, "speculative": False, "is_processing": False}
    if task is not None:
        slot |= {
            "id_task": task,
            "n_prompt_tokens": held,
            "n_prompt_tokens_processed": 0,
            "n_prompt_tokens_cache": 0,
            "params": sampling,
            "next_token": [{"has_next_token": False, "has_new_line": False, "n_remain": -1, "n_decoded": 0}],
        }
    return [slot]


def models(model: str, n_ctx: int, *, decides: bool) -> dict[str, Any]:
    """GET /v1/models."""
    details = {
        "parent_model": "",
        "format": "gguf",
        "family": "",
        "families": [""],
        "parameter_size": "",
        "quantization_level": "",
    }
    shown = {
        "name": model,
        "model": model,
        "modified_at": "",
        "size": "",
        "digest": "",
        "type": "model",
        "description": "",
        "tags": [""],
        "capabilities": ["completion"],
        "parameters": "",
        "details": details,
    }
    meta = {
        "vocab_type": 2,
        "n_vocab": VOCABULARY,
        "n_ctx": n_ctx,
        "n_ctx_train": n_ctx,
        "n_embd": 0,
        "n_params": 0,
        "size": 0,
        "ftype": "scripted",
    }
    data = {
        "id": model,
        "aliases": [model],
        "tags": [],
        "object": "model",
        "architecture": {
            "input_modalities": ["text"],
            "output_modalities": ["decisions"] if decides else ["text"],
        },
        "created": _EPOCH,
        "owned_by": "llamacpp",
        "meta": meta,
    }
    return {"models": [shown], "object": "list", "data": [data]}


def completion(
    reply: int, model: str, parsed: Parsed, finish: str, times: RequestTimes, seconds: float
) -> dict[str, Any]:
    """A chat completion. reply: its number; seconds: the server's clock."""
    message: dict[str, Any] = {"role": "assistant", "content": parsed.content}
    if parsed.thinking:
        message["reasoning_content"] = parsed.thinking
    if parsed.calls:
        message["tool_calls"] = [
            {"type": "function", "function": {"name": name, "arguments": arguments}, "id": call_id(reply, number)}
            for number, (name, arguments) in enumerate(parsed.calls)
        ]
    return {
        "choices": [{"finish_reason": finish, "index": 0, "message": message}],
        "created": _EPOCH + int(seconds),
        "model": model,
        "system_fingerprint": BUILD,
        "object": "chat.completion",
        "usage": times.usage(),
        "id": reply_id(reply),
        "timings": times.timings(),
    }


def chunks(document: dict[str, Any], *, include_usage: bool) -> Iterator[dict[str, Any]]:
    """A completion as the chunks of a stream, one for each token of the message."""
    (choice,) = document["choices"]

    def chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        return {
            "choices": [{"finish_reason": finish, "index": 0, "delta": delta}],
            "created": document["created"],
            "id": document["id"],
            "model": document["model"],
            "system_fingerprint": document["system_fingerprint"],
            "object": "chat.completion.chunk",
        }

    message = choice["message"]
    yield chunk({"role": "assistant", "content": None})
    for piece in pieces(message.get("reasoning_content", "")):
        yield chunk({"reasoning_content": piece})
    for piece in pieces(message["content"]):
        yield chunk({"content": piece})
    for number, call in enumerate(message.get("tool_calls", [])):
        arguments = call["function"]["arguments"]
        function = {"name": call["function"]["name"], "arguments": arguments[:1]}
        yield chunk({"tool_calls": [{"index": number, "id": call["id"], "type": "function", "function": function}]})
        for piece in pieces(arguments[1:]):
            yield chunk({"tool_calls": [{"index": number, "function": {"arguments": piece}}]})
    last = chunk({}, choice["finish_reason"])
    if not include_usage:
        yield last | {"timings": document["timings"]}
        return
    yield last
    yield chunk({}) | {"choices": [], "usage": document["usage"], "timings": document["timings"]}
