"""What a BuiltinPolicy says of itself: never that old keys are not needed while that is not known."""

import pytest

from crdkeeper.core.builtins.standing import encryption, ready
from crdkeeper.core.builtins.view import ServerAnswer, View, together
from tests.unit.builders import NOW
from tests.unit.core.builtins.builders import builtin_policy, view

NOT_PERMITTED = view("a", config=None)
NOT_REPORTED = view("a", config=("",))
NOT_ALL_ASKED = View(view("a").stored, frozenset(), ("c",), ("apiserver-b",), 2)
NOT_COUNTED = View(view("a").stored, frozenset(), ("c",), (), 0)
UNKNOWN = pytest.mark.parametrize(
    "seen",
    [NOT_PERMITTED, NOT_REPORTED, NOT_ALL_ASKED, NOT_COUNTED],
    ids=["not permitted", "not reported", "not asked", "no Leases"],
)


def test_what_is_proved_and_observed_is_current() -> None:
    found = ready(builtin_policy(), [], [], [], encryption(view("a")))
    assert (found.status, found.reason) == ("True", "Current")


def test_without_encryption_no_key_need_be_announced() -> None:
    seen = encryption(View(view("a").stored, frozenset(), ("",), (), 3, unencrypted=True))
    assert (seen.status, seen.reason) == ("True", "NotEncrypted")
    assert seen.message == "3 API servers without an encryption configuration."
    found = ready(builtin_policy(), [], [], [], seen)
    assert (found.status, found.reason) == ("True", "Current")


def test_why_metrics_cannot_be_read_is_told() -> None:
    found = encryption(together([ServerAnswer((), None, "404 not found")], None, NOW))
    assert (found.status, found.reason) == ("Unknown", "MetricsUnreadable")
    assert "404 not found" in found.message


@UNKNOWN
def test_nothing_is_current_while_a_new_key_would_not_be_seen(seen: View) -> None:
    found = ready(builtin_policy(), [], [], [], encryption(seen))
    assert (found.status, found.reason) == ("Unknown", "EncryptionNotObserved")
    assert "spec.encryptionKey" in found.message


@UNKNOWN
def test_keys_that_a_person_announces_are_taken_at_their_word(seen: View) -> None:
    found = ready(builtin_policy(encryptionKey="k1"), [], [], [], encryption(seen))
    assert (found.status, found.reason) == ("True", "Current")
    assert "unless keys have changed after spec.encryptionKey" in found.message
