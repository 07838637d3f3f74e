"""What several processes hold together is bounded as in one, and each gets its share back."""

import pytest

from crdkeeper.webhook.http.shedding import Room
from crdkeeper.webhook.processes.board import Beside, Board


class Client:
    """Holds bytes, until it is shed."""

    def __init__(self, room: Room, source: str, since: float = 0.0) -> None:
        self.room, self.source, self.since = room, source, since
        self.sheddable = True
        self.gone = False

    def shed(self) -> None:
        self.gone = True
        self.room.free(self)


@pytest.fixture
def board() -> Board:
    return Board(3)


@pytest.fixture
def rooms(board: Board) -> list[Room]:
    """One of each of two processes, for the same 100 bytes."""
    return [Room(100, Beside(board, row, 2).ledgers[0]) for row in range(2)]


def test_the_limit_is_for_all_together(rooms: list[Room]) -> None:
    here, there = rooms
    assert here.take(Client(here, "a"), 60)
    assert not there.take(Client(there, "b"), 60)
    assert there.take(Client(there, "b"), 40)
    assert (here.held, there.held) == (60, 40)


def test_what_another_process_lacks_is_given_up_down_to_the_share(rooms: list[Room]) -> None:
    here, there = rooms
    greedy = [Client(here, "greedy", since=number) for number in range(9)]
    assert all(here.take(each, 10) for each in greedy)
    here.settle()
    assert here.held == 90, "nobody lacked anything"
    assert not there.take(Client(there, "b"), 20)
    here.settle()
    assert here.held == 50
    assert [each.gone for each in greedy] == [True] * 4 + [False] * 5, "the oldest give way"
    assert there.take(Client(there, "b"), 20)
    here.settle()
    assert here.held == 50, "that was settled"


def test_what_is_worked_at_is_not_given_up(rooms: list[Room]) -> None:
    here, there = rooms
    client = Client(here, "a")
    client.sheddable = False
    assert here.take(client, 90)
    assert not there.take(Client(there, "b"), 20)
    here.settle()
    assert (here.held, client.gone) == (90, False)


def test_what_never_fits_makes_nobody_give_way(rooms: list[Room]) -> None:
    here, there = rooms
    client = Client(here, "a")
    assert here.take(client, 90)
    assert not there.take(Client(there, "b"), 101)
    here.settle()
    assert not client.gone


def test_what_a_dead_process_held_is_free(board: Board, rooms: list[Room]) -> None:
    here, there = rooms
    assert here.take(Client(here, "a"), 90)
    board.clear(0)
    assert there.take(Client(there, "b"), 90)


def test_kinds_of_bytes_are_counted_apart(board: Board) -> None:
    small, large = (Room(100, each) for each in Beside(board, 0, 2).ledgers[:2])
    assert small.take(Client(small, "a"), 100)
    assert large.take(Client(large, "a"), 100)


def test_who_has_more_connections_lets_others_go_first(board: Board) -> None:
    one, other = Beside(board, 0, 2), Beside(board, 1, 2)
    assert not one.fewer(5), "the other one does not serve yet"
    assert not other.fewer(0)
    assert one.fewer(5)
    assert not one.fewer(0)
    board.clear(1)
    assert not one.fewer(5), "the other one is dead"


def test_beats_are_counted_by_process_and_go_on_with_the_next(board: Board) -> None:
    board.beat(0)
    board.beat(2)
    board.beat(2)
    board.clear(2)
    board.beat(2)
    assert [board.beats(row) for row in range(3)] == [1, 0, 3]


def test_that_it_was_ready_is_known_after_its_end(board: Board) -> None:
    assert not board.was_ready(1)
    board.note_ready(1)
    board.clear(1)
    assert [board.was_ready(row) for row in range(3)] == [False, True, False]
