"""An event that tells of what a pass went by leads to no pass; anything else does."""

from crdkeeper.controllers.composite.news import UNKNOWN, News, token_of

KEY = "things.example.com\ndefault\norders"


def object_at(version: str) -> int:
    return token_of({"metadata": {"uid": "u", "resourceVersion": version}})


def ended_with(*versions: str) -> News:
    """A look has ended, and went by these versions of an object."""
    news = News()
    news.begin(KEY)
    news.end(KEY, map(object_at, versions))
    return news


def test_what_is_not_known_is_looked_at_now() -> None:
    news = ended_with("1")
    assert news.hear(KEY, object_at("2"))
    assert news.wait(KEY, 0.0) == 0.0


def test_what_a_look_went_by_is_no_news_after_it() -> None:
    news = ended_with("1")
    assert not news.hear(KEY, object_at("1"))
    assert news.wait(KEY, 0.0) is None


def test_an_event_may_come_before_the_look_that_caused_it_has_ended() -> None:
    news = News()
    news.begin(KEY)
    assert news.hear(KEY, object_at("1"))
    news.end(KEY, [object_at("1")])
    assert news.wait(KEY, 0.0) is None


def test_a_change_during_a_look_is_news_after_it() -> None:
    news = News()
    news.begin(KEY)
    news.hear(KEY, object_at("1"))
    news.hear(KEY, object_at("2"))
    news.end(KEY, [object_at("1")])
    assert news.wait(KEY, 0.0) == 0.0


def test_what_was_and_is_again_is_news_if_it_was_different_meanwhile() -> None:
    news = ended_with("1")
    news.hear(KEY, object_at("2"))
    news.hear(KEY, object_at("1"))
    assert news.wait(KEY, 0.0) == 0.0


def test_a_look_without_an_end_knows_nothing() -> None:
    news = ended_with("1")
    news.begin(KEY)
    assert news.hear(KEY, object_at("1"))


def test_what_may_be_missing_is_always_news() -> None:
    news = ended_with("1")
    assert news.hear(KEY, UNKNOWN)
    assert news.wait(KEY, 0.0) == 0.0


def test_who_is_due_later_waits_and_is_not_forgotten_for_events() -> None:
    news = ended_with("1")
    news.ask(KEY, 10.0)
    news.ask(KEY, 20.0)
    news.hear(KEY, object_at("1"))
    assert news.wait(KEY, 4.0) == 6.0
    news.hear(KEY, object_at("2"))
    assert news.wait(KEY, 4.0) == 0.0
    news.begin(KEY)
    assert news.wait(KEY, 30.0) is None
