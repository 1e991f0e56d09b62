"""The decision model's client against a real server that answers, refuses and breaks."""

import json
import socket
import threading

import pytest
from scripted_decider import NOT_A_DECIDER, answer, scripted_decider

from harness.agent.approval.advice import Advice, Decider, decider_url, wordings


@pytest.fixture(autouse=True)
def _no_override(monkeypatch):
    monkeypatch.delenv("AGENT_DECIDER", raising=False)


@pytest.mark.parametrize(
    ("probability", "line"),
    [
        (0.957, "decision model: LOOK CLOSELY (0.96)"),
        (0.054, "decision model: routine (0.05)"),
        (1, "decision model: LOOK CLOSELY (1.00)"),
        (0, "decision model: routine (0.00)"),
    ],
)
def test_the_printed_line(probability, line):
    with scripted_decider(lambda body: answer(probability)) as server:
        advice = Decider(server.url).advise("rm x", "/repo")
    assert advice.line == line
    assert advice.probability == probability
    assert advice.error is None
    assert advice.seconds > 0


def test_the_question_is_the_published_one():
    with scripted_decider(lambda body: answer(0.5)) as server:
        Decider(server.url).advise("x{command}" + "y" * 3000, "/place/{copy}")
        path, body = server.requests[0]
    assert path == "/v1/systemone"
    assert body["model"] == "jeff-latest"
    head, command = body["state"].split("Proposed command:\n")
    assert "/place/{copy}" in head
    assert command == ("x{command}" + "y" * 3000)[:1500]
    assert list(body["questions"]) == ["q"]
    question = body["questions"]["q"]
    assert question["type"] == "choice"
    assert question["criteria"]["1"].startswith("no: ")
    assert question["criteria"]["2"].startswith("yes: ")


def test_wordings_can_be_compared():
    asked = {}
    with scripted_decider(lambda body: answer(0.5)) as server:
        for name in wordings():
            advice = Decider(server.url, wording_name=name).advise("ls", "/repo")
            assert advice.wording == name
            asked[name] = json.dumps(server.requests[-1][1]["questions"])
    assert len(set(asked.values())) == len(asked) >= 2
    with pytest.raises(ValueError, match="no wording named 'rude'; known: published"):
        Decider(wording_name="rude")


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        ((501, json.dumps(NOT_A_DECIDER).encode()), "HTTP 501: This model is not a decision model"),
        ((500, b"oops"), "HTTP 500"),
        ((400, b'{"error": "bad"}'), "HTTP 400: bad"),
        ((200, b"not json"), "the reply is not JSON"),
        ((200, b"null"), "the reply is not JSON"),
        ((200, b"{}"), "the reply has no 'answers'"),
        ((200, b'{"answers": []}'), "the reply has no 'q'"),
        ((200, b'{"answers": {"q": {"choice": "2"}}}'), "the reply has no 'probabilities'"),
        ((200, b'{"answers": {"q": {"choice": "3", "probabilities": {"2": 0.5}}}}'), "choice is '3', not '1' or '2'"),
        ((200, b'{"answers": {"q": {"choice": "2", "probabilities": {"2": "x"}}}}'), "the probability of '2' is 'x'"),
        ((200, b'{"answers": {"q": {"choice": "2", "probabilities": {"2": NaN}}}}'), "the probability of '2' is nan"),
        ((200, b'{"answers": {"q": {"choice": "2", "probabilities": {"2": 1.5}}}}'), "the probability of '2' is 1.5"),
        ((200, b'{"answers": {"q": {"choice": ["2"], "probabilities": {"2": 0.5}}}}'), "choice is ['2']"),
        ((200, b"\xff\xfe"), "the reply is not JSON"),
    ],
)
def test_every_failure_is_no_answer(reply, error):
    with scripted_decider(lambda body: reply) as server:
        advice = Decider(server.url).advise("ls", "/repo")
    assert advice.choice is None
    assert advice.probability is None
    assert advice.error is not None
    assert advice.error.startswith(error)
    assert advice.line == f"decision model: no answer ({advice.error})"


def _hang_up(body):
    raise ConnectionError


def test_a_dropped_connection_and_a_closed_port_are_no_answer():
    with scripted_decider(_hang_up) as server:
        dropped = Decider(server.url).advise("ls", "/repo")
    assert dropped.error
    closed = Decider(server.url).advise("ls", "/repo")
    assert closed.error
    assert "\n" not in closed.line
    assert Decider("not a url").advise("ls", "/repo").error
    assert Decider("http://[").advise("ls", "/repo").error


def test_a_server_that_says_nothing_costs_the_limit_only():
    released = threading.Event()

    def wait(body):
        released.wait(20)
        return answer(0.5)

    with scripted_decider(wait) as server:
        advice = Decider(server.url, limit=0.2).advise("ls", "/repo")
        released.set()
    assert advice.error
    assert advice.seconds < 20


def test_a_server_that_drips_costs_the_limit_only():
    stop = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def drip():
            connection, _ = listener.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
                while not stop.wait(0.05):
                    try:
                        connection.sendall(b" ")
                    except OSError:
                        return

        thread = threading.Thread(target=drip)
        thread.start()
        advice = Decider(f"http://127.0.0.1:{listener.getsockname()[1]}", limit=0.3).advise("ls", "/repo")
        stop.set()
        thread.join()
    assert advice.error == "no whole reply in 0.3 s"


def test_commands_of_any_text_are_asked():
    with scripted_decider(lambda body: answer(0.5)) as server:
        assert Decider(server.url).advise("cat \ud800 é \0", "/repo").error is None


def test_where_the_decision_model_answers(monkeypatch):
    assert decider_url() == "http://127.0.0.1:18766/v1/systemone"
    assert decider_url("http://127.0.0.1:9/") == "http://127.0.0.1:9/v1/systemone"
    assert decider_url("http://127.0.0.1:9/v1/systemone") == "http://127.0.0.1:9/v1/systemone"
    monkeypatch.setenv("AGENT_DECIDER", "http://127.0.0.1:7")
    assert decider_url("http://127.0.0.1:9") == "http://127.0.0.1:7/v1/systemone"


def test_advice_keeps_what_was_said():
    advice = Advice("published", 1.5, "1", 0.25)
    with pytest.raises(AttributeError):
        advice.choice = "2"  # type: ignore[misc]
