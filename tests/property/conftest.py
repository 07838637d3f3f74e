"""How long the property tests look for a counterexample.

By default seconds, and always with the same examples, so that a failure is due to the current change.
HYPOTHESIS_PROFILE=long tries many new ones for some minutes.
"""

import os

from hypothesis import HealthCheck, settings

# Other load on the machine must not fail a test: no example has a deadline.
patient = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("quick", patient, max_examples=200, derandomize=True, database=None)
settings.register_profile("long", patient, max_examples=4000, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))
