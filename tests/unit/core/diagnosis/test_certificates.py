"""When the certificates of a webhook expire, and when to warn."""

from datetime import timedelta

import pytest

from crdkeeper.core.diagnosis.certificates import Certificate, Handshake, next_expiry
from tests.unit.builders import NOW

DAY = timedelta(days=1)


def certificate(
    left: float, *, lives: float = 365, subject: str = "CN=a", issuer: str = "CN=ca"
) -> Certificate:
    """A certificate with that many days left, of a lifetime of that many."""
    end = NOW + left * DAY
    return Certificate(subject, issuer, end - lives * DAY, end)


def serving(own: Certificate) -> Handshake:
    return Handshake("webhook:443", own)


@pytest.mark.parametrize(
    ("left", "lives", "reported", "urgent", "expired"),
    [
        (31, 365, False, False, False),
        (30, 365, True, False, False),
        (7.1, 365, True, False, False),
        (7, 365, True, True, False),
        (0.1, 365, True, True, False),
        (0, 365, True, True, True),
        (-9, 365, True, True, True),
        # A certificate of a week, renewed every few days, needs no warning for most of its life.
        (2.4, 7, False, False, False),
        (2.3, 7, True, False, False),
        (0.7, 7, True, True, False),
    ],
)
def test_notice(left: float, lives: float, reported: bool, urgent: bool, expired: bool) -> None:
    for found in (
        next_expiry((), serving(certificate(left, lives=lives)), NOW),
        next_expiry((certificate(left, lives=lives),), None, NOW),
    ):
        assert (found is not None) == reported
        if found is not None:
            assert (found.urgent, found.expired) == (urgent, expired)


def test_the_sentence_says_which_and_when() -> None:
    found = next_expiry((), serving(certificate(20.5, subject="CN=webhook")), NOW)
    assert found is not None
    assert found.sentence == (
        "The certificate of the webhook (CN=webhook) expires on 2026-01-22T15:04:05Z, in 20 days."
    )
    found = next_expiry((certificate(-1, subject=""),), None, NOW)
    assert found is not None
    assert found.sentence == "The caBundle expired on 2026-01-01T03:04:05Z."


@pytest.mark.parametrize(("left", "words"), [(1.5, "in 36 hours"), (2, "in 2 days"), (0.05, "in 1 hour")])
def test_what_is_left_in_words(left: float, words: str) -> None:
    found = next_expiry((certificate(left),), None, NOW)
    assert found is not None
    assert found.sentence.endswith(f"{words}.")


def test_a_bundle_is_as_good_as_its_last_certificate() -> None:
    assert next_expiry((certificate(-400), certificate(100)), None, NOW) is None
    found = next_expiry((certificate(-400, subject="CN=old"), certificate(5, subject="CN=new")), None, NOW)
    assert found is not None
    assert "CN=new" in found.sentence


def test_of_a_known_issuer_only_that_one_counts() -> None:
    own = certificate(100, issuer="CN=signer")
    bundle = (certificate(3, subject="CN=signer"), certificate(300, subject="CN=other"))
    found = next_expiry(bundle, serving(own), NOW)
    assert found is not None
    assert "CN=signer" in found.sentence
    assert next_expiry(bundle, serving(certificate(100, issuer="CN=unknown")), NOW) is None


def test_the_first_to_end_is_told() -> None:
    found = next_expiry((certificate(3, subject="CN=ca"),), serving(certificate(2, issuer="CN=ca")), NOW)
    assert found is not None
    assert "certificate of the webhook" in found.sentence
