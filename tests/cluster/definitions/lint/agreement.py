"""Compares our result for a CRD with the API server's."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from crdkeeper.apiserver.schema import rules
from crdkeeper.apiserver.schema.violation import Report, Violation
from crdkeeper.cluster.transport.client import Client, Unreachable

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

_ATTEMPTS = 3

_SELF_TYPE = re.compile(r"\bselfType[0-9]+")
"""The name of the type of `self`, which differs each time."""

Cause = tuple[str, str]
"""A field and the server's message about it."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The API server's answer."""

    code: int
    message: str
    causes: frozenset[Cause]
    body: Mapping[str, Any] = field(default_factory=dict)
    """The CRD as it would be stored, or the status."""


async def ask(client: Client, crd: Any, *, replaced: str | None = None) -> Verdict:
    """Sends a CRD as a dry run, to be created or to replace the one with that name.

    The API server has bugs that end the connection: that is its verdict then.
    """
    # orjson rejects integers of more than 64 bits.
    content = json.dumps(crd).encode()
    method, path = ("POST", CRDS) if replaced is None else ("PUT", f"{CRDS}/{replaced}")
    for _ in range(_ATTEMPTS):
        try:
            answer = await client.send(method, f"{path}?dryRun=All", content=content)
            break
        except Unreachable:
            # It ends the connections of other requests as well.
            continue
    else:
        return Verdict(500, "the API server fails on it", frozenset())
    body = answer.json()
    details = body.get("details") or {} if answer.code >= 400 else {}
    causes = frozenset(
        (each["field"], _SELF_TYPE.sub("selfType", each["message"])) for each in details.get("causes") or ()
    )
    return Verdict(answer.code, str(body.get("message", ""))[:500], causes, body)


@dataclass(frozen=True, slots=True)
class Comparison:
    """The comparison of a CRD."""

    refused: bool
    undecided: bool
    """Whether we left something to the server, which is then not compared."""
    disagreement: str | None


def compare(report: Report, verdict: Verdict) -> Comparison:
    """Whether both agree: accepted or rejected, and each field with its message."""
    refused = verdict.code >= 400
    undecided = bool(report.unchecked)
    return Comparison(refused, undecided, _disagreement(report, verdict))


def _disagreement(report: Report, verdict: Verdict) -> str | None:
    undecodable = any(each.rule is rules.DECODE or _is_misdirected(each) for each in report.violations)
    if undecodable or verdict.code == 400:
        same = undecodable and verdict.code == 400
        return None if same else f"decodes: {not undecodable}, but {verdict.code}: {verdict.message}"
    if verdict.code == 409 or any(each.kind == "Conflict" for each in report.violations):
        same = verdict.code == 409 and any(each.kind == "Conflict" for each in report.violations)
        return None if same else f"{verdict.code}: {verdict.message}, but {report.violations}"
    internal = [each.detail for each in report.violations if each.kind == "Internal error"]
    if verdict.code == 500 and any(each in verdict.message for each in internal):
        return None
    if verdict.code not in (200, 201, 422):
        return None if report.unchecked else f"{verdict.code}: {verdict.message}"
    left = [_stem(str(each.path)) for each in report.unchecked]
    if any(each.rule is rules.PATTERN for each in report.unchecked):
        return None
    ours = {as_worded(each, verdict.causes): each for each in report.violations}
    missing = sorted(each for each in verdict.causes - ours.keys() if not _is_left(each, left))
    extra = sorted(each for each in ours.keys() - verdict.causes if not _is_unsure(ours[each], report))
    if not missing and not extra:
        return None
    return "only the server:\n" + _listed(missing) + "only we:\n" + _listed(extra)


def _is_misdirected(violation: Violation) -> bool:
    """Whether an update has another name than the object that it is sent to, which is a bad request."""
    return violation.rule is rules.NAME and violation.detail == "field is immutable"


_RULE = re.compile(r"(.*\.x-kubernetes-validations\[\d+\])\.(rule|messageExpression)")


def _stem(path: str) -> str:
    """Everything that the compiler says about a rule is reported somewhere below it."""
    rule = _RULE.fullmatch(path)
    return rule[1] if rule else path


def _is_left(cause: Cause, left: list[str]) -> bool:
    field, message = cause
    if any(field.startswith(each) for each in left):
        return True
    if message.startswith("Internal error"):
        # The compiler may fail for the schema as a whole, before the first expression.
        return any(each.startswith(f"{field}[") for each in left)
    return bool(left) and "estimated rule cost total" in message


_ABOUT_EXPRESSIONS = frozenset((rules.CEL, rules.CEL_COST, rules.OLD_SELF))


def _is_unsure(violation: Violation, report: Report) -> bool:
    """Whether a message is the server's own, or depends on the validity of a default."""
    of_default = violation.rule is rules.DEFAULT_VALUE and violation.detail.startswith("rule compile error: ")
    if violation.rule not in _ABOUT_EXPRESSIONS and not of_default:
        return False
    path = str(violation.path)
    return any(each.rule is rules.DEFAULT_VALUE or str(each.path) == path for each in report.unchecked)


def as_worded(violation: Violation, causes: frozenset[Cause]) -> Cause:
    """Our violation in the server's form, without the dump of an invalid value."""
    field = str(violation.path)
    if violation.value is None and violation.kind == "Invalid value":
        for cause in causes:
            if cause[0] == field and cause[1].endswith(f": {violation.detail}"):
                return cause
    return field, violation.message


def _listed(causes: list[Cause]) -> str:
    return "".join(f"  {field}: {message[:600]}\n" for field, message in causes)
