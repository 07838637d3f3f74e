"""Which fields contain a secret itself, instead of a reference to one.

Most fields with the name of a secret do not: they name a key of a Secret, a file, a header, or the type of a
credential. Neighbouring fields and the description show the difference.
"""

import re

from crdkeeper.core.lint.place import SchemaPlace

_NAMES = (
    *("password", "passwd", "privatekey", "apikey", "accesstoken", "bearertoken", "clientsecret"),
    *("secretaccesskey", "sessiontoken", "authtoken", "refreshtoken"),
)
_PLACES = frozenset(("key", "name", "namespace", "optional", "secretkeyref", "valuefrom"))
"""Neighbours of a field that belongs to a reference to a secret."""
_ELSEWHERE = re.compile(
    r"\bsecrets?\b|\bkeys? (?:of|in|within|name)\b|\bpath|\bfiles?\b|\bname of\b|\brefer|\bheader\b|\benv\b"
    r"|\benvironment\b|\bmount|\bvault\b|\bencrypted\b|\bhash|\bdeprecated\b|\buri\b|\burl\b|\bfield\b",
    re.IGNORECASE,
)
"""Phrases in descriptions of fields that only refer to a secret, or that warn of a secret."""
_INLINE = re.compile(r"\bPEM\b|\binline\b|\bcontents?\b|\bencoded\b|\bplain", re.IGNORECASE)
_AROUND = re.compile(r"secret|ref$|selector|keys$|mapping|template", re.IGNORECASE)
"""Names of objects whose fields name the keys of a secret."""


def is_secret(place: SchemaPlace) -> bool:
    """Whether a string is a secret, by its name, its neighbours and its description.

    An author who also offers a reference has already decided.
    """
    name = place.name.lower()
    if not name.endswith(_NAMES) or "encrypted" in name or "hash" in name:
        return False
    description = place.schema.get("description") or ""
    if _ELSEWHERE.search(description):
        return False
    if name.endswith("privatekey") and not _INLINE.search(description):
        # More often than not it is the path of one.
        return False
    parent = place.parent
    while parent is not None and not parent.name:
        parent = parent.parent
    if parent is not None and _AROUND.search(parent.name):
        return False
    holder = place.parent.schema if place.parent is not None else {}
    beside = {each.lower() for each in holder.get("properties") or {}} - {name}
    return not any(
        each in _PLACES
        or "secret" in each
        or "credential" in each
        or (each.startswith(name) and each != name)
        for each in beside
    )
