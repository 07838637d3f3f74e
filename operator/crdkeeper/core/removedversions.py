"""How server-side apply fails after a version leaves spec.versions: one wording for all removals.

An entry of metadata.managedFields names the version that its manager wrote. To merge an apply, the API server
converts the object to the version of each entry, and it calls no webhook for a version that the CRD does not
have (`crConverter` and `nopConverter` of k8s.io/apiextensions-apiserver, kubernetes#111937).
"""

from typing import Final

APPLY_ANSWER: Final = "request to convert CR to an invalid group/version"
"""The beginning of the API server's answer to an apply, with code 500; the removed group/version follows."""

APPLY_FAILS: Final = (
    "If an entry of an object's metadata.managedFields names a version that the CRD no longer has, every "
    f'server-side apply to that object fails with 500 ("{APPLY_ANSWER}"), whoever applies it, also with '
    "--force-conflicts and to /status. Other writes succeed, but their field managers are no longer "
    "recorded. A version that is only not served does no such harm."
)
"""Who is affected, and how."""

APPLY_REMEDY: Final = (
    "Before you remove the version, run `crdkeeper migrate PLURAL.GROUP --managed-fields retarget --verify "
    "full`, or create a StorageMigration with managedFields: Retarget and verify: Full. It moves these "
    "entries to the storage version."
)
"""What to do; PLURAL.GROUP stands for the CRD's name."""
