"""Which fields contain a secret itself, instead of a reference to one.

Most fields with the name of a secret do not: they name a key of a Secret, a file, a header, or the type of a
credential. Neighbouring fields and the description show the difference.
"""

import re

from crdkeeper.core.lint.place import SchemaPlace
from crdkeeper.core.lint.references import plain

_NAMES = (
    *("password", "passwd", "privatekey", "apikey", "accesstoken", "bearertoken", "clientsecret"),
    *("secretaccesskey", "sessiontoken", "authtoken", "refreshtoken"),
)
_UNCERTAIN_NAMES = ("token", "secretkey")
"""These also name pages of results or keys of a Secret, so the description must call the field a secret."""
_ITSELF = re.compile(
    r"(?:\w+ (?:is|holds|contains|specifies|defines) )?(?:the|an?|your) (?:[\w-]+ ){0,3}?"
    r"(?:token|password|passphrase|(?:private|secret|signing|api) key|credential)\b"
    r"(?! (?:(?:that|which) )?(?:types?|names?|contain|hold|select|expir|endpoint|lifetime|id)\w*\b)",
    re.IGNORECASE,
)
"""The beginning of a description that calls the field the secret itself."""
_NO_SECRET = re.compile(
    r"\b(?:idempoten\w*|unique\w*|pages?|paginat\w*|audiences?|bucket|review|(?:request|per) token)\b",
    re.IGNORECASE,
)
"""Words in descriptions of tokens that are not secrets."""
_SECRET_KEY = re.compile(r"\bsecret (?:access )?key\b", re.IGNORECASE)
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
    name = plain(place.name)
    if "encrypted" in name or "hash" in name or not _says_secret(name, place.schema.get("description") or ""):
        return False
    form = place.parent
    while form is not None and not form.name:
        form = form.parent
    if form is not None and _AROUND.search(form.name):
        return False
    if place.parent is not None and place.parent.references.beside(place.name):
        return False
    # The object or list with this field may be one of several forms, of which another is a reference.
    holder = form.parent if form is not None else None
    return form is None or holder is None or not holder.references.instead_of(form.name)


def _says_secret(name: str, description: str) -> bool:
    certain = name.endswith(_NAMES)
    if not certain and not name.endswith(_UNCERTAIN_NAMES):
        return False
    itself = _ITSELF.match(description) is not None
    if not certain and (not itself or _NO_SECRET.search(description)):
        return False
    # The secret key of an account is not a key of a Secret.
    if _ELSEWHERE.search(_SECRET_KEY.sub("credential", description) if itself else description):
        return False
    # More often than not, it is the path of one.
    return itself or not name.endswith("privatekey") or _INLINE.search(description) is not None
