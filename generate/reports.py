"""Generates the page about DefinitionReports from the reasons in the code: `python -m generate.reports`."""

from crdkeeper.cli.output.printing import print_page
from crdkeeper.core.diagnosis.registry import PROBED, REASONS
from crdkeeper.core.diagnosis.verdict import Reason

_BEGINNING = """\
<!-- Made by `python -m generate.reports > docs/reports.md`; do not edit. -->

# What a DefinitionReport says about a CRD

The operator maintains a DefinitionReport for each CRD in the cluster. It has the CRD's name, is owned by it
and is deleted with it. Nothing is written to the CRD itself.

```
$ kubectl get definitionreports
NAME                    READY   REASON             STORAGE   STORED        FINDINGS   AGE
gadgets.example.com     False   OldVersionsStored  v2        ["v1","v2"]   0          3d
widgets.example.com     True    Healthy            v1        ["v1"]        2          3d
```

`kubectl describe defrep NAME` shows all conditions with what to do. `kubectl wait --for=condition=Ready
defrep/NAME` waits until all problems are solved. Events report each problem, and when it is solved. The
metric `crdkeeper_definition_conditions{{condition,status,reason}}` counts the CRDs in each state.

- `status.definitionGeneration` is the generation of the CRD that the report describes.
- `status.census` is the last complete count of the objects, and of the versions that managedFields name.
  It needs permission to read them, is made every six hours and after changes of the CRD, and only for CRDs
  that have several versions, have ever changed, or have a deprecated version. `status.counting` is how far a
  count has got; a restarted operator continues there, unless a StorageMigration of the resource has ended
  since the count began, or that was more than six hours ago. It rests while one writes the objects.
- Conditions that need requests ({probed})
  are checked separately, and need permission to read the objects: `manifests/samples/reader-role.yaml`.
  Until the first result these conditions say so; after a restart of the operator they keep their state until
  then.
- `status.findings` lists the worst of what [`crdkeeper lint`](lint.md) finds, at most 50 and without matters
  of style. `status.findingCounts` counts all of them. Severity Refused means that the API server would refuse
  the CRD if it were created now. The annotation `lint.crdkeeper.dev/ignore` is respected.

The operator overwrites changes that others make to a report, but keeps conditions that others add. If the
operator is not allowed to write reports, its log says so, and they stay unchanged.

## Ready

True if no other condition needs attention. Otherwise it is False, or Unknown if the only problem is a state
not known yet. Its reason is that of the first condition below that has a problem; the message names the
others. A reason with a ✓ leaves Ready True.

Ready is for whoever runs the cluster. A reason has no ✓ if both of these hold:

1. Something does not work in this cluster, or will stop working: objects cannot be read, written or deleted,
   a version cannot be removed, unknown fields are not pruned. Or the API server is about to decide that.
2. Whoever runs the cluster can end it, even if the CRD belongs to another project: by a migration, a
   certificate, a running webhook, a permission, a fix to one object, or the CRD of a current release.

All else has a ✓, also where the condition is False: what only the author of the CRD can mend, such as the
schema of `status.conditions`, a scale path that leads nowhere, or a missing approval; what would fail only in
another cluster; and what crdkeeper cannot find out.

[scaling.md](scaling.md) shows ScalingReady and StatusWritersReady on a real cluster.
"""


def page() -> str:
    ready, *others = REASONS
    sections = [f"\n## {type_}\n{_reasons(type_)}" for type_ in others]
    probed = ", ".join(each for each in REASONS if each in PROBED)
    return _BEGINNING.format(probed=probed) + _reasons(ready) + "".join(sections)


def _reasons(type_: str) -> str:
    return "".join(map(_reason, REASONS[type_]))


def _reason(reason: Reason) -> str:
    mark = " ✓" if reason.healthy else ""
    remedy = f"\n\nWhat to do: {reason.remedy}" if reason.remedy else ""
    return f"\n### {reason.condition} {reason.status}: {reason.name}{mark}\n\n{reason.meaning}{remedy}\n"


if __name__ == "__main__":
    print_page(page())
