"""Launch order holds in bounded memory, whatever ends first."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.server_log.order import LaunchOrder
from analysis.server_log.rows import RequestRow


def row(task: int) -> RequestRow:
    return RequestRow(0, task, None, None, None, None, None, None, None, "ok")


@settings(max_examples=150, deadline=None)
@given(data=st.data(), limit=st.integers(1, 40), size=st.integers(1, 120))
def test_rows_come_in_order_of_their_places(data, limit, size):
    order = LaunchOrder(limit=limit)
    places = [order.place() for _ in range(size)]
    given_up = set(data.draw(st.lists(st.sampled_from(places), max_size=5)))
    taken = []
    for place in data.draw(st.permutations(places)):
        order.fill(place, None if place in given_up else row(place))
        assert len(order._waiting) <= limit
        taken += order.take()
    order.close()
    assert [line.task for line in taken] == [place for place in places if place not in given_up]


def test_one_open_request_holds_many_back():
    order = LaunchOrder(limit=500)
    places = [order.place() for _ in range(20_000)]
    for place in places[1:]:
        order.fill(place, row(place))
        assert len(order._waiting) <= 500
    assert order.take() == []
    order.fill(0, row(0))
    assert [line.task for line in order.take()] == places
    order.close()
