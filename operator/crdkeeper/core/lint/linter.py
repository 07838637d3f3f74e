"""All findings for one CRD: the API server's errors, the conventions, and what its author ignores.

The only entry point, for reports about the CRDs of a cluster, for `crdkeeper lint`, and for the composer.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from crdkeeper.apiserver.definitions.create import check_creation, check_decoded, decode
from crdkeeper.apiserver.schema import rules
from crdkeeper.apiserver.schema.props import VALIDATIONS
from crdkeeper.apiserver.schema.violation import Report, Violation, Warned
from crdkeeper.core.lint.annotation import apply_annotation
from crdkeeper.core.lint.cells import try_columns
from crdkeeper.core.lint.check import check_conventions
from crdkeeper.core.lint.extensions import is_extension
from crdkeeper.core.lint.found import AtPath, Findings, Found
from crdkeeper.core.lint.severity import Severity

_SET_BY_SERVER = frozenset(
    (
        *("uid", "resourceVersion", "generation", "creationTimestamp", "selfLink", "managedFields"),
        *("finalizers", "deletionTimestamp", "deletionGracePeriodSeconds", "ownerReferences"),
    )
)

_UNKNOWN_FIELD = re.compile(r"undefined field '([^']*)'")
_MISPLACED = ("spec", "schema")
"""The schema of all versions, as if apiextensions.k8s.io/v1 had one."""
MOST_STEPS: Final = 2_000_000
"""Values that all columns for samples visit: about two seconds."""


def lint(
    crd: Mapping[str, Any],
    *,
    live: bool = False,
    forbidden: frozenset[str] = frozenset(),
    more: Iterable[Found] = (),
) -> list[Found]:
    """Report what the API server would reject if the CRD were created now, and which conventions it violates.

    `live`: it was read from a cluster. Then what the API server and controllers add, which is in no manifest,
    is left out. `forbidden` are keywords that schemas must not use. `more` is what the CRD itself does not
    show, and its annotation can ignore, too. Equal findings are not merged yet (`merging.py`), so that
    comments in files can ignore each. Raises RecursionError if the CRD is nested too deeply to be decoded.
    """
    authored = _as_authored(crd) if live else crd
    report = Report()
    decoded = decode(authored, report)
    if decoded is not None:
        check_decoded(decoded, report)
    found = list(_of_the_server(report))
    if decoded is not None:
        found += check_conventions(decoded, None if live else crd, forbidden)
    found += more
    metadata = authored.get("metadata")
    return apply_annotation(metadata if isinstance(metadata, dict) else {}, found)


def lint_accepted(crd: Mapping[str, Any], more: Iterable[Found] = ()) -> list[Found]:
    """Like `lint` for a manifest without errors, which are not looked for again; `more` comes first.

    Raises RecursionError if the CRD is nested too deeply to be decoded.
    """
    report = Report()
    decoded = decode(crd, report)
    if decoded is None:
        return []
    found = [*more, *_of_the_server(report), *check_conventions(decoded, crd)]
    return apply_annotation(crd["metadata"], found)


def lint_samples(
    crd: Mapping[str, Any], objects: Sequence[Mapping[str, Any]], steps: int = MOST_STEPS
) -> list[Found]:
    """Report what a CRD's columns show for objects of its kind; nothing if the API server rejects the CRD.

    Each object is checked in the version that it is written in. `steps` limits the values that all columns
    together visit in all objects; nothing is said about a column that needs more than its share.
    """
    decoded = decode(crd, Report())
    if decoded is None or check_creation(crd).violations:
        return []
    found = Findings()
    for i, version in enumerate(decoded["spec"]["versions"]):
        api_version = f"{decoded['spec']['group']}/{version['name']}"
        written = [each for each in objects if each.get("apiVersion") == api_version]
        if written:
            try_columns(version, i, written, found, steps // len(objects))
    # Errors in the annotation are among the findings for the CRD itself.
    return apply_annotation(crd["metadata"], found.items)[: len(found.items)]


def _of_the_server(report: Report) -> Iterator[Found]:
    misplaced = [each for each in report.warnings if each.path.steps == _MISPLACED]
    lacking = [each for each in report.violations if each.rule is rules.SCHEMA_REQUIRED]
    for violation in report.violations:
        found = _of_violation(violation)
        if misplaced and violation in lacking:
            found = found._replace(message=f"{found.message}; spec.schema is at the wrong level")
        yield found
    for violation in report.behind:
        yield _of_violation(violation, behind=True)
    for warning in report.warnings:
        if not (lacking and warning in misplaced):
            yield _of_warning(warning)
    for left in report.unchecked:
        yield Found(left.rule, AtPath(left.path), (), left.reason, Severity.UNCHECKED, final=True)


def _of_violation(violation: Violation, *, behind: bool = False) -> Found:
    at, mistake = AtPath(violation.path), _mistake(violation) if violation.rule is rules.CEL else ""
    return Found(
        violation.rule,
        at,
        (),
        violation.message,
        Severity.ERROR,
        final=True,
        behind=behind,
        mistake=mistake,
    )


def _mistake(violation: Violation) -> str:
    """What rules of one object have in common that are refused only for the same unknown field."""
    names = _UNKNOWN_FIELD.findall(violation.detail)
    if len(set(names)) != 1 or len(names) != violation.detail.count("ERROR: "):
        return ""
    return f"{str(violation.path).partition(f'.{VALIDATIONS}[')[0]}: {names[0]}"


def _of_warning(warning: Warned) -> Found:
    if warning.rule is rules.UNKNOWN_FIELD and is_extension(warning.path.steps):
        message = f"{warning.message}: an extension, which the API server drops"
        return Found(warning.rule, AtPath(warning.path), (), message, Severity.INFO)
    return Found(warning.rule, AtPath(warning.path), (), warning.message, Severity.WARNING)


def _as_authored(crd: Mapping[str, Any]) -> Mapping[str, Any]:
    metadata = {key: each for key, each in (crd.get("metadata") or {}).items() if key not in _SET_BY_SERVER}
    return {**{key: each for key, each in crd.items() if key != "status"}, "metadata": metadata}
