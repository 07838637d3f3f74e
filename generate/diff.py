"""Generates the page about `crdkeeper diff` from the kinds of changes: `python -m generate.diff`."""

from crdkeeper.cli.output.printing import print_page
from crdkeeper.core.compatibility.change import ChangeKind, Effects
from crdkeeper.core.compatibility.compare import all_kinds

_BEGINNING = """\
<!-- Made by `python -m generate.diff > docs/diff.md`; do not edit. -->

# What `crdkeeper diff` says about a change

`crdkeeper diff` compares CRDs before and after a change and shows who is affected:

- **writers**, who send objects: people, pipelines, other operators and, for fields below `.status`, the
  controller;
- **readers**, who read objects: the controller and, for fields below `.status`, everyone else;
- **stored objects**, which become invalid, lose fields, or change their meaning;
- **operators**, who run the cluster: the update is refused, or needs manual work.

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

A change is **breaking** if a promise that someone relies on no longer holds; **risky** if it depends on how
the CRD is used, or cannot be decided offline (for example, whether one regular expression matches everything
that another one does); and otherwise **safe**. Where a changed pattern, rule or junctor cannot be decided,
crdkeeper makes up objects and validates them as the API server does before and after the change: one that
was accepted and is refused makes the change breaking, and is shown (`example` in JSON).

The direction matters: a value that joins an enum is safe for writers and risky for readers, one that leaves
it is breaking for writers. Below `.status` the controller writes, which usually comes with the CRD, so there
the readers matter most.

Tests with generated schemas and objects on a real API server check that after a change that is safe for
writers, nothing valid before is refused. (Except lists in fields of type string with a format, which the API
server accepts by mistake.)

## Which CRDs and versions are compared

CRDs are compared by name. If each side has only one CRD, the two are compared whatever their names. Each
served version is compared with itself. Then the served versions of the new CRD are compared with one another,
because what is written through one is read through the others; only differences that the old CRD did not have
are reported. If nothing converts and another version becomes the storage version, what it lacks is reported
even so, because from then on it is pruned from all that is written. For a version that is stored but not
served, only the effects on stored objects count. Files do not show where objects are stored, so there these
effects are risky, but for the storage version.

Without a conversion webhook such differences lose data. If the files do not show the webhook because
kustomize adds it, use `--converted`, or compare the output of `kustomize build`.

In a git revision, symlinks are followed. One that leads to nothing in the revision, into a submodule, or out
of the repository is an error, because what it stood for is not known; one to a folder is no file, as on the
disk. The repository is the one around the working directory, or around the file with `--against`, whatever
`GIT_DIR` says: git sets it for hooks of linked worktrees.

The cluster knows what files do not: which versions hold objects (`status.storedVersions`). Prefer
`crdkeeper diff -f` before an upgrade.

## In a pipeline

```
crdkeeper diff --against origin/main config/crd -o sarif > crds.sarif
```

| exit code | meaning |
|---|---|
| 0 | nothing as severe as `--fail-on` (default: breaking) |
| 1 | something is |
| 2 | something could not be read or compared, or there is no CRD (`--allow-none`) |

`-o sarif` is for code hosts: breaking changes are errors, risky ones warnings, with `--all` safe ones
notes, each at its line in the new file. `-o json` lists all changes, with the effects by audience. At
most 2,000 changes of each severity are listed per CRD; the counts and the verdict cover all of them.

One shared type can cause the same change in many fields, versions and CRDs. As text, changes with the same
kind, message and field name are shown once, with their number; `--all` shows each. `alike` is that number in
JSON, which lists each.

## Configuration

A team can choose the severity of a [kind of change](#kinds-of-changes) in `.crdkeeper.yaml`, the file that
[`crdkeeper lint`](lint.md#configuration) reads too:

```yaml
diff:
  severity:                 # by id: breaking, risky, safe or off (not reported)
    enum-loosened: safe
    columns: off
```

The nearest file in the folder of the new CRD or in one above it is used; for a removed CRD, the search starts
in the folder of the old one, and for standard input, git revisions and the cluster in the working folder.
`--config` selects another file. An invalid configuration is an error that names the line.

The verdict, `--fail-on` and all formats follow the chosen severity; who is affected (`effects` in JSON) stays
as it is. The output says how many changes have another severity or are left out by configuration, and by
which file (`configuration` in JSON, a notification in SARIF).

What could not be read or compared still exits with 2. What the API server refuses stays breaking or risky, so
the configuration cannot name these kinds: FIXED.

## Large CRDs

However large a CRD is, it is compared in a few seconds. For CRDs that would take longer (dozens of versions
of which all fields differ, or rules of more than a million characters) the command says that it could not
compare everything, and exits with 2. What it has found by then is still shown.

## What is not decided

- Whether a changed pattern, rule or junctor refuses what it accepted, where no such object was found: risky.
- Whether a rule or junctor around a field refuses a new default, type or null: risky for writers where it
  names the field, or may see it without naming it. These kinds are marked with *.
- How the controller handles a value; whether a webhook converts without loss.
- Labels, annotations and `caBundle`.

## Kinds of changes

`!` is breaking, `?` risky; no mark is safe.
"""


def page() -> str:
    kinds = all_kinds()
    fixed = [f"[{each.id}](#{each.id})" for each in kinds if each.fixed]
    beginning = _BEGINNING.replace("FIXED", f"{', '.join(fixed[:-1])} and {fixed[-1]}")
    return beginning + "".join(map(_section, kinds))


def _section(kind: ChangeKind) -> str:
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
