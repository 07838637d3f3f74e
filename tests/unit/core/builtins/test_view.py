"""The answers of several API servers put together: what is agreed, what differs, and who was not asked."""

from dataclasses import replace

import pytest

from crdkeeper.core.builtins.view import (
    METRIC,
    EncryptedBy,
    ServerAnswer,
    StoredAs,
    complete,
    configuration_in,
    is_behind,
    server_hash,
    together,
    version_of,
)
from crdkeeper.core.migration.observation import ApiServerLease
from tests.unit.builders import NOW, lease

SECRETS = StoredAs("", "secrets", "old", "v1")
LEASES = [lease("a"), lease("b")]


def says(*stored: StoredAs, server: str = "", config: str = "") -> ServerAnswer:
    return ServerAnswer(stored, EncryptedBy(server_hash(server) if server else "", config))


def plain(address: str = "", *, has_metric: bool = True, stored: StoredAs = SECRETS) -> ServerAnswer:
    """What an API server says that does not encrypt."""
    return ServerAnswer((stored,), EncryptedBy("", ""), "", address, has_metric)


def test_servers_that_agree_have_one_hash() -> None:
    view = together(
        [says(SECRETS, server="a", config="x"), says(SECRETS, server="b", config="x")], LEASES, NOW
    )
    assert (view.hashes("secrets"), view.configuration(), view.unasked) == ("old", "x", [])


def test_servers_that_differ_show_all_they_say() -> None:
    other = StoredAs("", "secrets", "new", "v2")
    view = together([says(SECRETS, server="a", config="x"), says(other, server="b", config="y")], LEASES, NOW)
    assert (view.hashes("secrets"), view.configuration()) == ("new,old", "x,y")


def test_a_server_without_encryption_differs_from_one_with() -> None:
    view = together([says(SECRETS, server="a", config="x"), says(SECRETS)], LEASES, NOW)
    assert view.configuration() == "none,x"


def test_a_resource_that_one_server_lacks_is_not_agreed() -> None:
    assert together([says(SECRETS), says()], LEASES, NOW).hashes("secrets") == "none,old"


def test_a_server_that_was_not_asked_leaves_the_configuration_unknown() -> None:
    view = together([says(SECRETS, server="a", config="x")], LEASES, NOW)
    assert (view.configuration(), view.unasked) == (None, ["b"])
    gone = together([says(SECRETS, server="a", config="x")], [lease("a"), lease("b", expires_in=0)], NOW)
    assert gone.configuration() == "x"


def test_metrics_that_may_not_be_read_leave_it_unknown() -> None:
    assert together([ServerAnswer([SECRETS], None)], LEASES, NOW).configuration() is None


@pytest.mark.parametrize(
    ("answers", "leases", "over"),
    [
        ([], [lease("a")], False),
        ([says()], [lease("a")], True),
        ([says()], [], True),
        ([says(server="a", config="x")], LEASES, False),
        ([says(server="a", config="x"), says(server="b", config="x")], LEASES, True),
        ([says(), says()], LEASES, False),
        ([says()], None, False),
        ([plain("a:1"), plain("b:1")], LEASES, True),
        ([plain("a:1"), plain("a:1"), plain("")], LEASES, False),
        ([plain("a:1"), replace(says(server="a", config="x"), address="b:1")], LEASES, False),
        ([replace(says(), configuration=None, address=each) for each in ("a:1", "b:1")], LEASES, True),
    ],
    ids=[
        "not asked",
        "one server",
        "no Leases",
        "one of two",
        "both",
        "unnamed",
        "Leases unknown",
        "both addresses",
        "one address",
        "an address is no name",
        "no metrics",
    ],
)
def test_it_is_certain_that_all_were_asked(
    answers: list[ServerAnswer], leases: list[ApiServerLease] | None, over: bool
) -> None:
    assert complete(answers, leases, NOW) is over


@pytest.mark.parametrize(
    ("answers", "leases", "certain"),
    [
        ([plain()], LEASES[:1], True),
        ([plain("a:1"), plain("b:1")], LEASES, True),
        ([plain("a:1"), plain("a:1")], LEASES, False),
        ([plain("a:1"), plain("b:1", has_metric=False)], LEASES, False),
        ([plain("a:1"), replace(plain("b:1"), configuration=None)], LEASES, False),
        (
            [plain("a:1"), says(server="b", config="x")],
            LEASES,
            False,
        ),
        ([plain()], [], False),
        ([plain()], [lease("a", expires_in=0)], False),
        ([plain()], None, False),
        ([], LEASES[:1], False),
    ],
    ids=[
        "one server",
        "both servers",
        "one of two",
        "an old release",
        "metrics unread",
        "one encrypts",
        "no Leases",
        "no live Lease",
        "Leases unknown",
        "no answer",
    ],
)
def test_it_is_certain_that_nobody_encrypts(
    answers: list[ServerAnswer], leases: list[ApiServerLease] | None, certain: bool
) -> None:
    assert together(answers, leases, NOW).unencrypted is certain


def test_a_metric_is_read() -> None:
    line = f'{METRIC}{{apiserver_id_hash="sha256:12",hash="sha256:6bc9f4aa2e5587afbb"}} 1'
    assert configuration_in(line) == EncryptedBy("sha256:12", "6bc9f4aa2e55")


@pytest.mark.parametrize(
    "line",
    [
        "",
        f"# HELP {METRIC} x",
        f'{METRIC}_more{{hash="x"}} 1',
        f"{METRIC}{{",
        f'{METRIC}{{hash="x"}} 1',
        METRIC + '{apiserver_id_hash="' + "x" * 100_000 + '",hash="y"} 1',
        METRIC + '{a="\\"' * 100_000,
    ],
)
def test_another_line_is_none(line: str) -> None:
    assert configuration_in(line) is None


@pytest.mark.parametrize(
    ("line", "behind"),
    [
        ("# TYPE apiserver_request_total counter", True),
        (f"# TYPE {METRIC}_more gauge", True),
        (f"# TYPE {METRIC} gauge", False),
        ("# TYPE aggregator_unavailable_apiservice gauge", False),
        ("# HELP aggregator_x # TYPE z", False),
        ('apiserver_audit_event_total{x="# TYPE z"} 1', False),
    ],
)
def test_the_end_of_what_is_needed_of_metrics_is_known(line: str, behind: bool) -> None:
    assert is_behind(line) is behind


def test_a_hash_shows_its_version() -> None:
    # As an API server of 1.37 says of apps/v1 Deployments.
    assert version_of("8aSe+NMegvE=", "apps", "Deployment", ["v1beta1", "v1"]) == "v1"
    assert version_of("8aSe+NMegvE=", "apps", "Deployment", ["v1beta1"]) == ""
