"""The rules for spec.versions: names, storage, deprecation, subresources, columns, selectable fields."""

from crdkeeper.apiserver.definitions.rules.internalform import Decoded, Part, Spec
from crdkeeper.apiserver.definitions.rules.requirements import MAX_SELECTABLE
from crdkeeper.apiserver.dnsnames import label_errors
from crdkeeper.apiserver.golang.strings import UNICODE_VARIES, is_printable
from crdkeeper.apiserver.schema import fieldreference, rules
from crdkeeper.apiserver.schema.fieldpath import Path, root
from crdkeeper.apiserver.schema.structural import conversion_error
from crdkeeper.apiserver.schema.violation import OMITTED, Report

_COLUMN_TYPES = ("boolean", "date", "integer", "number", "string")
_COLUMN_FORMATS = ("byte", "date", "date-time", "double", "float", "int32", "int64", "password")


def check_version_name(name: str, path: Path, report: Report) -> None:
    """The name of one version."""
    errors = label_errors(name)
    if errors:
        report.invalid(rules.VERSION_NAME, path, name, ",".join(errors))


def check_versions(spec: Spec, report: Report) -> None:
    """The rules for all versions together."""
    names = [each.get("name", "") for each in spec.versions]
    at = spec.path.child("versions")
    if len(set(names)) < len(names):
        report.invalid(rules.VERSION_NAME, at, OMITTED, "must contain unique version names")
    if sum(bool(each.get("storage")) for each in spec.versions) != 1:
        detail = "must have exactly one version marked as storage version"
        report.invalid(rules.STORAGE, at, OMITTED, detail)
    if names and names[0]:
        check_version_name(names[0], spec.path.child("version", "versions", 0, "name"), report)


def check_stored_versions(spec: Spec, old: list[str], report: Report) -> None:
    """status.storedVersions, to which the server adds the (first) storage version; `old` are the old ones."""
    at = root("status").child("storedVersions")
    stored = [*old, *(each for each in storing(spec) if each not in old)]
    if not stored:
        report.invalid(rules.STORED_VERSIONS, at, None, "must have at least one stored version")
        return
    places = {each: i for i, each in enumerate(stored)}
    for version in spec.versions:
        name = version.get("name", "")
        if places.pop(name, None) is None and version.get("storage"):
            # So it also reports this for a second version with the same name.
            detail = f"must have the storage version {name}"
            report.invalid(rules.STORED_VERSIONS, at, stored, detail)
    for each, i in places.items():
        detail = (
            f"missing from spec.versions; {each} was previously a storage version, and must remain in "
            "spec.versions until a storage migration ensures no data remains persisted in "
            f"{each} and removes {each} from status.storedVersions"
        )
        report.invalid(rules.STORED_VERSIONS, at.index(i), each, detail)


def storing(spec: Spec) -> list[str]:
    """The (first) storage version; also the value of an unset status.storedVersions."""
    return [each.get("name", "") for each in spec.versions if each.get("storage")][:1]


def check_deprecation(version: Decoded, path: Path, report: Report) -> None:
    """deprecationWarning of one version."""
    warning = version.get("deprecationWarning")
    if warning is None:
        return
    at = path.child("deprecationWarning")
    if not version.get("deprecated"):
        report.invalid_as_json(rules.DEPRECATION, at, warning, "can only be set for deprecated versions")
        return
    if len(warning.encode()) > 256:
        report.invalid_as_json(rules.DEPRECATION, at, warning, "must be <= 256 characters long")
    if not warning:
        report.invalid_as_json(rules.DEPRECATION, at, warning, "must not be an empty string")
    for i, char in enumerate(warning):
        printable = is_printable(char)
        if printable:
            continue
        if printable is None:
            report.leave(rules.DEPRECATION, at, UNICODE_VARIES)
        else:
            place = len(warning[:i].encode())
            detail = (
                "must only contain printable UTF-8 characters; "
                f"non-printable character found at index {place}"
            )
            report.invalid_as_json(rules.DEPRECATION, at, warning, detail)
        break


def check_subresources(part: Part, report: Report) -> None:
    """The paths of the scale subresource."""
    scale = (part.subresources or {}).get("scale")
    if scale is None:
        return
    at = part.place("subresources")
    for key, roots in (("specReplicasPath", (".spec.",)), ("statusReplicasPath", (".status.",))):
        path = at.child(f"scale.{key}", "scale", key)
        value = scale.get(key, "")
        if not value:
            report.required(rules.SCALE, path)
        elif _is_simple_path(value, path, rules.SCALE, report) and not value.startswith(roots):
            report.invalid(rules.SCALE, path, value, f"should be a json path under {roots[0].rstrip('.')}")
    value = scale.get("labelSelectorPath", "")
    path = at.child("scale.labelSelectorPath", "scale", "labelSelectorPath")
    if (
        value
        and _is_simple_path(value, path, rules.SCALE, report)
        and not value.startswith((".spec.", ".status."))
    ):
        report.invalid_as_json(
            rules.SCALE, path, value, "should be a json path under either .spec or .status"
        )


def _is_simple_path(value: str, path: Path, rule: rules.Rule, report: Report) -> bool:
    if value.startswith("."):
        return True
    report.invalid(rule, path, value, "must be a simple json path starting with .")
    return False


def check_columns(part: Part, report: Report) -> None:
    """additionalPrinterColumns."""
    for i, column in enumerate(part.columns):
        path = part.place("additionalPrinterColumns").index(i)
        if not column.get("name"):
            report.required(rules.COLUMN, path.child("name"))
        type_, format_ = column.get("type", ""), column.get("format", "")
        types = "must be one of " + ",".join(_COLUMN_TYPES)
        if not type_:
            report.required(rules.COLUMN, path.child("type"), types)
        elif type_ not in _COLUMN_TYPES:
            report.invalid(rules.COLUMN, path.child("type"), type_, types)
        if format_ and format_ not in _COLUMN_FORMATS:
            detail = "must be one of " + ",".join(_COLUMN_FORMATS)
            report.invalid(rules.COLUMN, path.child("format"), format_, detail)
        json_path, at = column.get("jsonPath", ""), path.child("JSONPath", "jsonPath")
        if not json_path:
            report.required(rules.COLUMN, at)
        else:
            _is_simple_path(json_path, at, rules.COLUMN, report)


def check_selectable_fields(part: Part, report: Report, *, any_number: bool) -> None:
    """selectableFields; `any_number` says whether there may be more than the limit."""
    if not part.selectable_fields:
        return
    at = part.place("selectableFields")
    schema = part.schema
    if schema is None:
        if not part.own and part.validation is not None:
            report.leave(rules.SELECTABLE_FIELD, at, "without a schema, the API server fails on them")
            return
        detail = (
            "may only be set when `version.schema.openAPIV3Schema` is not included"
            if part.own
            else "may only be set when validations.schema is included"
        )
        report.invalid(rules.SELECTABLE_FIELD, at, "", detail)
        return
    error = conversion_error(schema)
    if error:
        schema_at = part.path.child("schema.openAPIV3Schema", *_schema_steps(part))
        report.invalid(rules.SELECTABLE_FIELD, schema_at, "", error)
        report.leave(rules.SELECTABLE_FIELD, at, "without a structural schema, they are not checked")
        return
    unique: set[str] = set()
    for i, field in enumerate(part.selectable_fields):
        path = at.index(i).child("jsonPath")
        json_path = field.get("jsonPath", "")
        if not json_path:
            report.required(rules.SELECTABLE_FIELD, path)
            continue
        try:
            target = fieldreference.resolve(json_path, schema, arrays=False)
        except fieldreference.BadReference as bad:
            report.invalid(rules.SELECTABLE_FIELD, path, json_path, f"is an invalid path: {bad}")
            continue
        except fieldreference.ServerFails as fails:
            report.leave(rules.SELECTABLE_FIELD, path, str(fails))
            continue
        _check_target(target, json_path, path, report)
        if target.normal in unique:
            report.duplicate(rules.SELECTABLE_FIELD, path, json_path)
        unique.add(target.normal)
    if len(unique) > MAX_SELECTABLE and not any_number:
        report.too_many(rules.SELECTABLE_FIELD, at, len(unique), MAX_SELECTABLE)


def _schema_steps(part: Part) -> tuple[str | int, ...]:
    below = ("schema", "openAPIV3Schema")
    return below if part.own else ("versions", 0, *below)


def _check_target(target: fieldreference.ReferenceTarget, json_path: str, path: Path, report: Report) -> None:
    if target.first == "metadata":
        report.invalid(rules.SELECTABLE_FIELD, path, json_path, "must not point to fields in metadata")
    if target.schema is None or target.schema.get("type") not in ("string", "boolean", "integer"):
        detail = (
            "must point to a field of type string, boolean or integer. "
            "Enum string fields and strings with formats are allowed."
        )
        report.invalid(rules.SELECTABLE_FIELD, path, json_path, detail)


def check_preserve_unknown_fields(spec: Spec, report: Report) -> None:
    """spec.preserveUnknownFields, which is obsolete."""
    if not spec.spec.get("preserveUnknownFields"):
        return
    detail = (
        "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in "
        "spec.versions[*].schema instead"
    )
    at = spec.path.child("preserveUnknownFields")
    report.invalid(rules.PRESERVE_UNKNOWN_FIELDS, at, True, detail)
