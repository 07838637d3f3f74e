"""The conditions of a DefinitionReport that follow from the CRD itself: each becomes false and true again."""

import base64
from typing import Any

import pytest

from tests.cluster.harness import Admin, CustomKind, Operator, eventually
from tests.cluster.harness.admin import CRDS
from tests.cluster.reports.reports import condition_of, report_with

READY = "True/Healthy"
ANNOTATION = "api-approved.kubernetes.io"


async def create(admin: Admin, kind: CustomKind, **changes: Any) -> dict[str, Any]:
    """Creates a CRD without waiting until it is served; `changes` are merged into its spec."""
    body = kind.to_object()
    names = {**body["spec"]["names"], **changes.pop("names", {})}
    body["spec"] |= {"names": names, **changes}
    return await admin.create(CRDS, body)


async def told_by_event(admin: Admin, kind: CustomKind, reason: str) -> None:
    """Returns when there is a Warning with that reason."""

    async def reported() -> bool:
        events = await admin.events(kind.name, "DefinitionReport")
        return ("Warning", reason) in [(type_, found) for type_, found, _ in events]

    await eventually(reported, otherwise=lambda: f"no Event says {reason}")


@pytest.mark.parametrize(
    ("names", "reason"),
    [
        ({"shortNames": ["database"]}, "ShortNamesConflict"),
        ({"singular": "databases"}, "SingularConflict"),
        ({"kind": "Database"}, "KindConflict"),
        ({"listKind": "Database"}, "ListKindConflict"),
        # The server reports only the last one; our message has all.
        ({"singular": "databases", "shortNames": ["database"]}, "ShortNamesConflict"),
    ],
    ids=["short names", "singular", "kind", "list kind", "two"],
)
async def test_names_that_another_crd_holds(
    admin: Admin, operator: Operator, group: str, names: dict[str, Any], reason: str
) -> None:
    holder = CustomKind(group)
    await admin.apply_definition(holder)
    late = CustomKind(group, plural="stores", kind="Store")
    await create(admin, late, names=names)

    report = await report_with(
        admin,
        late.name,
        NamesAccepted=f"False/{reason}",
        Established="False/NotAccepted",
        Ready=f"False/{reason}",
    )
    message = condition_of(report, "NamesAccepted").message
    for field in names:
        assert field in message
    assert f"CRD {holder.name}" in message
    await told_by_event(admin, late, reason)

    await admin.delete(f"{CRDS}/{holder.name}")
    await report_with(
        admin, late.name, NamesAccepted="True/NoConflicts", Established="True/Established", Ready=READY
    )


async def test_a_ca_bundle_that_is_none(admin: Admin, operator: Operator, group: str) -> None:
    kind = CustomKind(group)
    junk = base64.b64encode(b"no certificate").decode()
    service = {"namespace": "default", "name": "webhook"}
    webhook = {
        "clientConfig": {"service": service, "caBundle": junk},
        "conversionReviewVersions": ["v1"],
    }
    await create(admin, kind, conversion={"strategy": "Webhook", "webhook": webhook})
    await report_with(admin, kind.name, Established="False/InvalidCABundle")

    await admin.merge(f"{CRDS}/{kind.name}", {"spec": {"conversion": {"strategy": "None", "webhook": None}}})
    await report_with(admin, kind.name, Established="True/Established", Ready=READY)


async def test_no_version_is_served(admin: Admin, operator: Operator, group: str) -> None:
    kind = CustomKind(group)
    await admin.apply_definition(kind)
    await report_with(admin, kind.name, Ready=READY)
    hidden = kind.changed("v1", served=False).changed("v2", served=False)

    await admin.apply(f"{CRDS}/{kind.name}", hidden.to_object())

    await report_with(admin, kind.name, Established="True/NoVersionServed", Ready="False/NoVersionServed")
    await admin.apply_definition(kind)
    await report_with(admin, kind.name, Established="True/Established", Ready=READY)


async def test_approval(admin: Admin, operator: Operator, group: str) -> None:
    plain = CustomKind(group)
    await admin.apply_definition(plain)
    type_ = "KubernetesAPIApprovalPolicyConformant"
    await report_with(admin, plain.name, **{type_: "True/NotApplicable"})

    protected = CustomKind(f"{group.removesuffix('.example.com')}.k8s.io")
    body = protected.to_object()
    body["metadata"]["annotations"] = {ANNOTATION: "unapproved, for a test"}
    await admin.create(CRDS, body)
    report = await report_with(admin, protected.name, **{type_: "False/UnapprovedAnnotation"}, Ready=READY)
    assert "unapproved, for a test" in condition_of(report, type_).message

    approved = {ANNOTATION: "https://github.com/kubernetes/kubernetes/pull/78458"}
    await admin.merge(f"{CRDS}/{protected.name}", {"metadata": {"annotations": approved}})
    await report_with(admin, protected.name, **{type_: "True/ApprovedAnnotation"})


async def test_structural_schemas(admin: Admin, operator: Operator, group: str) -> None:
    """Kubernetes rejects non-structural schemas since 1.22; see the tests that write to etcd."""
    kind = CustomKind(group)
    await admin.apply_definition(kind)
    await report_with(admin, kind.name, NonStructuralSchema="False/Structural")


async def test_a_condition_that_the_server_adds_comes_soon(
    admin: Admin, operator: Operator, group: str
) -> None:
    """Between the first event of a CRD and the end of its installation, the server leaves nothing Unknown."""
    kind = CustomKind(group)
    await create(admin, kind)

    report = await report_with(admin, kind.name, Established="True/Established")
    assert "NotYetProcessed" not in {each.reason for each in report.status.conditions}
