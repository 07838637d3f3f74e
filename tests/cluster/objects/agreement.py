"""Compares our result for an object with the API server's."""

import re
from dataclasses import dataclass
from typing import Any

import orjson

from crdkeeper.apiserver.objects import valuerules
from crdkeeper.apiserver.objects.jsonvalue import same, stored
from crdkeeper.apiserver.objects.objectschema import Admitted
from crdkeeper.cluster.transport.client import Client, Unreachable

Json = Any
Cause = tuple[str, str]
_ATTEMPTS = 3
_UNKNOWN = re.compile(r'unknown field "([^"]*)"')
_SET_BY_SERVER = ("uid", "creationTimestamp", "generation", "managedFields", "resourceVersion", "selfLink")


@dataclass(frozen=True, slots=True)
class Verdict:
    """The API server's answer."""

    code: int
    message: str
    causes: frozenset[Cause]
    object: Json


async def ask(client: Client, method: str, path: str, obj: Json) -> Verdict:
    """Sends an object as a dry run."""
    content = orjson.dumps(obj)
    for attempt in range(_ATTEMPTS):
        try:
            answer = await client.send(method, f"{path}?dryRun=All", content=content)
            break
        except Unreachable:
            if attempt == _ATTEMPTS - 1:
                raise
    body = answer.json()
    details = body.get("details") or {} if answer.code >= 400 else {}
    causes = frozenset(
        (each.get("field", ""), _with_known_name(each["message"], obj["metadata"]))
        for each in details.get("causes") or ()
    )
    return Verdict(answer.code, str(body.get("message", ""))[:1500], causes, body)


def _with_known_name(message: str, metadata: Json) -> str:
    """The message with x in place of the random characters in a generated name."""
    prefix = metadata.get("generateName")
    if metadata.get("name") or not isinstance(prefix, str):
        return message
    return re.sub(rf'"{re.escape(prefix)}[a-z0-9]{{5}}"', f'"{prefix}xxxxx"', message)


async def unknown_fields(client: Client, method: str, path: str, obj: Json) -> set[str]:
    """The unknown fields in an object that the server accepts."""
    content = orjson.dumps(obj)
    answer = await client.send(method, f"{path}?dryRun=All&fieldValidation=Strict", content=content)
    said = str(answer.json().get("message", ""))
    return set(_UNKNOWN.findall(said)) if answer.code == 400 else set()


def disagreement(admitted: Admitted, verdict: Verdict) -> str | None:
    """Where we and the server differ; None if nowhere, or if we left it to the server."""
    undecodable = any(each.rule is valuerules.DECODE for each in admitted.violations)
    if undecodable or verdict.code == 400:
        if admitted.unchecked:
            return None
        same_fate = undecodable and verdict.code == 400
        return None if same_fate else f"decodes: {not undecodable}, but {verdict.code}: {verdict.message}"
    if verdict.code not in (200, 201, 422):
        return f"{verdict.code}: {verdict.message}"
    ours = {(str(each.path), each.message) for each in admitted.violations}
    missing, extra = sorted(verdict.causes - ours), sorted(ours - verdict.causes)
    if admitted.unchecked:
        # The server's message may contain what we left open, but must contain what we are sure of.
        missing = []
    if missing or extra:
        return "only the server:\n" + _listed(missing) + "only we:\n" + _listed(extra)
    if verdict.code == 422 or admitted.violations:
        return None if admitted.violations or admitted.unchecked else f"422: {verdict.message}"
    left, right = _comparable(admitted.object), _comparable(verdict.object)
    if same(left, right):
        return None
    return f"objects differ\nours:   {_dumped(left)}\nserver: {_dumped(right)}\n"


def _comparable(obj: Json) -> Json:
    found = stored(obj)
    metadata = found.get("metadata", {})
    if "generateName" in metadata:
        metadata.pop("name", None)
    found["metadata"] = {key: each for key, each in metadata.items() if key not in _SET_BY_SERVER}
    return found


def _dumped(value: Json) -> str:
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()[:3000]


def _listed(causes: list[Cause]) -> str:
    return "".join(f"  {field}: {message[:900]}\n" for field, message in causes)
