"""The dice of tests that kill and change things at random."""

import os
import random


def drawn_seed() -> int:
    """CRDKEEPER_SEED, or CRDKEEPER_DICE, with which .ci/run has the same ones again, or any."""
    given = os.environ.get("CRDKEEPER_SEED") or os.environ.get("CRDKEEPER_DICE")
    return int(given) if given else random.SystemRandom().randrange(2**32)
