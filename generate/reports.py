"""The page about DefinitionReports, from the reasons in the code: `python -m generate.reports`."""

from crdkeeper.cli.output.printing import print_page
from crdkeeper.core.diagnosis.registry import PROBED, REASONS
from crdkeeper.core.diagnosis.verdict import Reason

_BEGINNING = """\
<!-- Made by `python -m generate.reports > docs/reports.md`; do not edit. -->

# What a DefinitionReport says of a CRD

The operator keeps a DefinitionReport for each CRD of the cluster. It has the CRD's name, is owned by it and
goes with it; nothing is written to the CRD itself.

```
$ kubectl get definitionreports
NAME                    READY   REASON             STORAGE   STORED        FINDINGS   AGE
gadgets.example.com     False   OldVersionsStored  v2        ["v1","v2"]   0          3d
widgets.example.com     True    Healthy            v1        ["v1"]        2          3d
```

`kubectl describe defrep NAME` shows all conditions with what to do; `kubectl wait --for=condition=Ready
defrep/NAME` waits for the end of all trouble. Events tell of each trouble, and when it is over. The metric
`crdkeeper_definition_conditions{{condition,status,reason}}` counts the CRDs in each state.

- `status.definitionGeneration` is the generation of the CRD that was looked at.
- What takes requests ({probed}) is asked in a lane of
  its own and needs the right to read the objects: `manifests/samples/reader-role.yaml`. Until the first
  answer these conditions say so; after a restart of the operator they stay as they were until then.
- `status.findings` lists the worst of what [`crdkeeper lint`](lint.md) finds, 50 at most and without matters
  of taste; `status.findingCounts` counts them all. Severity Refused means that the API server would refuse
  the CRD if it were created now. The annotation `lint.crdkeeper.dev/ignore` is respected.

What others change in a report is put right. Conditions that others add are left alone. If the operator may
not write reports, its log says so, and they stay as they are.

## Ready

True if no other condition needs attention. Else it is False, or Unknown where all that is wrong is not known
yet, and its reason is that of the first condition below that is to blame; the message names the others. A
reason with a ✓ leaves Ready True.
"""


def page() -> str:
    """The whole page."""
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
