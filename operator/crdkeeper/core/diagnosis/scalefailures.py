"""What the API server says of an object that has no /scale because of its own values.

The texts come from ScaleREST.Get in registry/customresource/etcd.go, and from NestedInt64 and NestedString of
apimachinery. Any other error is of the API server, of etcd, or of a conversion webhook.
"""

import re

from crdkeeper.core.diagnosis.conversionfailures import blames_webhook
from crdkeeper.core.diagnosis.probes import Failure, ProbeTrouble

_ABSENT = re.compile('the spec replicas field ".*" does not exist')
_WRONG_TYPE = "accessor error: "


def blames_object(failure: Failure) -> bool:
    """Whether the object was read, and its values are the cause."""
    return lacks_replicas(failure) or has_wrong_value(failure)


def lacks_replicas(failure: Failure) -> bool:
    """Whether the object was read, and does not have the replicas field."""
    return _was_read(failure) and _ABSENT.search(failure.message) is not None


def has_wrong_value(failure: Failure) -> bool:
    """Whether the object was read, and has a value of a type that cannot be in /scale."""
    return _was_read(failure) and _WRONG_TYPE in failure.message


def _was_read(failure: Failure) -> bool:
    # A conversion webhook may say the same of what it converts.
    return failure.trouble is ProbeTrouble.FAILED and not blames_webhook(failure.message)
