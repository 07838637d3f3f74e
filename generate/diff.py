"""The page about `crdkeeper diff`, made from the kinds of changes: `python -m generate.diff`."""

from crdkeeper.cli.output.printing import print_page
from crdkeeper.core.compatibility.change import Effects, Kind
from crdkeeper.core.compatibility.compare import all_kinds

_BEGINNING = """\
<!-- Made by `python -m generate.diff > docs/diff.md`; do not edit. -->

# What `crdkeeper diff` says of a change

`crdkeeper diff` compares CRDs before and after a change and says whom the change hurts:

- **writers**, who send objects: people, pipelines, other operators; of fields below `.status` the
  controller;
- **readers**, who read objects: the controller; of fields below `.status` everybody else;
- **stored objects**, which became invalid, lost fields, or mean something else;
- **operators**, who run the cluster: the update is refused, or something must be done by hand.

```
crdkeeper diff old.yaml new.yaml               two files or folders
crdkeeper diff v1.2.0:config/crd config/crd    a git revision and a folder
crdkeeper diff --against main config/crd       a git revision and the working tree
crdkeeper diff -f config/crd                   the cluster and files: what would an upgrade do here?
```

```
widgets.example.com, v1
  new.yaml:31:19: breaking[enum-tightened]: spec.color: enum: "red" no longer accepted
      Hurts writers and stored objects. Objects with a removed value are refused. …
      hint: Keep the value, and let the controller treat it like its replacement.

1 CRD compared. Changes: 1 breaking, 0 risky, 4 safe (--all shows the safe ones).
Breaking for writers and stored objects.
```

A change is **breaking** where what was promised no longer holds for who relied on it; **risky** where it
depends on how the CRD is used, or where it cannot be decided offline (whether one regular expression
matches all that another one does, say); and otherwise **safe**. The direction matters: a value that joins
an enum is safe for writers and risky for readers, one that leaves it is breaking for writers. Below
`.status` the controller writes, which usually comes with the CRD, so there the readers matter most.

That nothing formerly valid is refused after a change that is called safe for writers is tested with
generated schemas and objects on a real API server. (Left out are lists in fields of type string with a
format, which the API server takes by a mistake of its own.)

## Which CRDs and versions are compared

CRDs are compared by name; one CRD on each side is compared under any name. Each served version is compared
with itself. Then the served versions of the new CRD are compared with one another, because what is written
through one is read through the others; only differences that the old CRD did not have are told. Of a
version that is not served but stored only the effects on stored objects count.

Without a conversion webhook such differences lose data. Where the files do not show the webhook because
kustomize adds it, say `--converted`, or compare what `kustomize build` prints.

The cluster knows what files do not: which versions hold objects (`status.storedVersions`). Prefer
`crdkeeper diff -f` before an upgrade.

## In a pipeline

```
crdkeeper diff --against origin/main config/crd -o sarif > crds.sarif
```

| exit code | meaning |
|---|---|
| 0 | nothing as severe as `--fail-on` (breaking, unless told otherwise) |
| 1 | something is |
| 2 | something could not be read or compared |

`-o sarif` is for code hosts: breaking changes are errors, risky ones warnings, with `--all` safe ones
notes, each at its line in the new file. `-o json` has all changes, with the effects by audience. Of each
severity 2,000 changes of a CRD are listed at most; the counts and the verdict are of all. A comparison that
would take more than 2,000,000 steps is ended and exits with 2.

## What is not decided

- Whether a changed pattern, rule or junctor refuses what it accepted: risky.
- Whether a rule or junctor around a field refuses a new default, type or null: risky for writers where it
  names the field, or may see it without naming it. These kinds are marked with *.
- What the controller makes of a value; whether a webhook converts without loss.
- Labels, annotations and `caBundle`.

## Kinds of changes

`!` is breaking, `?` risky; no mark is safe.
"""


def page() -> str:
    """The whole page."""
    return _BEGINNING + "".join(map(_section, all_kinds()))


def _section(kind: Kind) -> str:
    hurt = _listed(kind.effects)
    if kind.in_status is not None and kind.in_status != kind.effects:
        hurt += f"; below `.status`: {_listed(kind.in_status)}"
    star = " *" if kind.reinterprets else ""
    return f"\n### {kind.id}\n\n{hurt}{star}\n\n{kind.why}\n\nWhat to do: {kind.remedy}\n"


_MARKS = {"breaking": "!", "risky": "?", "safe": ""}


def _listed(effects: Effects) -> str:
    return ", ".join(f"{who}{_MARKS[severity]}" for who, severity in effects.items()) or "safe"


if __name__ == "__main__":
    print_page(page())
