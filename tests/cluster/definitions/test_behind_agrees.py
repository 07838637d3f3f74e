"""The API server reports what `crdkeeper lint` finds behind a CRD's first errors, once these are fixed.

A script fixes what the API server reports, round by round; each claim must then be among its errors.
CRDKEEPER_VARIANTS sets how many CRDs are drawn, CRDKEEPER_SEED selects others.
"""

import copy
import os
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import strategies as st

from crdkeeper.apiserver.definitions.create import check_creation
from crdkeeper.apiserver.schema import rules
from crdkeeper.apiserver.schema.props import LIST_MAP_KEYS, LIST_TYPE, VALIDATIONS
from crdkeeper.apiserver.schema.violation import Report, Violation
from crdkeeper.cluster.transport.client import Client
from crdkeeper.cluster.transport.connection import Connection
from tests.cluster.definitions.lint.agreement import Cause, as_worded, ask
from tests.cluster.definitions.lint.drawing import drawn
from tests.cluster.definitions.lint.variants import BASES, Crd, change_schema, variants
from tests.controlplane.cluster import Cluster

COUNT = int(os.environ.get("CRDKEEPER_VARIANTS", "150"))
SEED = int(os.environ.get("CRDKEEPER_SEED", "0"))
ROUNDS = 400
SHOWN = 10


@st.composite
def _broken(draw: st.DrawFn) -> Crd:
    """A CRD with several changes of its schemas, most of them for the worse."""
    crd: Crd = copy.deepcopy(draw(variants(BASES)))
    for _ in range(draw(st.integers(2, 5))):
        change_schema(draw, crd)
    return crd


def _at(document: Any, steps: tuple[str | int, ...]) -> Any:
    for step in steps:
        inside = isinstance(document, dict) and step in document
        if not inside and not (isinstance(document, list) and isinstance(step, int) and step < len(document)):
            return None
        document = document[step]
    return document


def _drop(value: Any, keyword: str) -> None:
    """Removes a keyword that the API server reports without its place."""
    if isinstance(value, dict):
        value.pop(keyword, None)
    for each in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        _drop(each, keyword)


def _mend(crd: Crd, violation: Violation, claims: Sequence[Violation]) -> None:
    """Removes the innermost part of the schemas around an error that no claim is about, or adds a type."""
    steps = violation.path.steps
    if "openAPIV3Schema" not in steps:
        return
    if steps[-1] == "type" and violation.kind == "Required value":
        owner = _at(crd, steps[:-1])
        if isinstance(owner, dict) and "type" not in owner and "list-type" not in violation.detail:
            is_text = steps[-2] in ("kind", "apiVersion")
            owner["type"] = "string" if is_text else "array" if "items" in owner else "object"
            return
    if "fields are allowed at the root" in violation.detail:
        schema = _at(crd, steps)
        for key in schema.keys() - {"type", "properties", "required", VALIDATIONS}:
            del schema[key]
    if violation.rule is rules.UNSUPPORTED_KEYWORD and steps[-1] == "openAPIV3Schema":
        _drop(_at(crd, steps), "$schema")
    if "list-type" in violation.detail or steps[-1] == LIST_MAP_KEYS:
        steps = (*steps[:-1], LIST_TYPE)
    places = [each.path.steps for each in claims]
    for i in range(len(steps) - 1, steps.index("openAPIV3Schema"), -1):
        owner = _at(crd, steps[:i])
        if isinstance(owner, dict) and steps[i] in owner:
            if not any(each[: i + 1] == steps[: i + 1] for each in places):
                del owner[steps[i]]
            return


def _has_place(crd: Crd, violation: Violation) -> bool:
    """Whether the default or rule of a claim still exists after the fix."""
    steps = violation.path.steps
    return any(_at(crd, steps[:i]) is not None for i in (len(steps), len(steps) - 1))


async def _unproved(client: Client, crd: Crd, report: Report) -> tuple[list[str], int]:
    """The claims that the API server never confirms, and how many it has confirmed."""
    waiting, proved = list(report.behind), 0
    for _ in range(ROUNDS):
        now = check_creation(crd)
        if any(each.rule is rules.DEFAULT_VALUE for each in now.unchecked):
            return [], proved  # a default that only the server can judge hides the rest
        found = now.violations
        waiting = [each for each in waiting if _has_place(crd, each)]
        others = [each for each in found if not any(_same(each, claim) for claim in waiting)]
        errors = [each for each in others if "openAPIV3Schema" in each.path.steps]
        said: list[Violation] = []
        if not errors or len(others) < len(found):
            causes = (await ask(client, crd)).causes
            said = [each for each in waiting if _is_said(each, causes)]
            proved += len(said)
            waiting = [each for each in waiting if each not in said]
        if not waiting or not (errors or said):
            break
        _mend(crd, (errors or said)[0], waiting)
    return [f"{each.path}: {each.message}" for each in waiting], proved


def _is_said(claim: Violation, causes: frozenset[Cause]) -> bool:
    if "Syntax error: " in claim.detail:
        # The parser has its own messages.
        return any(field == str(claim.path) and "Syntax error: " in message for field, message in causes)
    return as_worded(claim, causes) in causes


def _same(one: Violation, other: Violation) -> bool:
    return str(one.path) == str(other.path) and one.message == other.message


@pytest.mark.timeout(300 + COUNT)
async def test_the_api_server_says_it_once_the_errors_before_are_mended(plane: Cluster) -> None:
    crds = drawn(_broken(), COUNT, SEED)
    wrong: list[str] = []
    proved = claims = 0
    async with Client(Connection(plane.kubeconfig)) as client:
        for crd in crds:
            report = check_creation(crd)
            if not report.behind or report.unchecked:
                continue
            claims += len(report.behind)
            missing, number = await _unproved(client, copy.deepcopy(crd), report)
            proved += number
            wrong += [f"{each}\n{crd}" for each in missing]
    print(f"{len(crds)} CRDs: {claims} claims, {proved} proved, {len(wrong)} never made")
    assert not wrong, f"{len(wrong)} of {claims}\n" + "\n".join(each[:3000] for each in wrong[:SHOWN])
    assert proved > COUNT / 10
