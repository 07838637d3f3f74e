"""Generates the page about `crdkeeper lint` from its rules: `python -m generate.lint`."""

from collections.abc import Iterator

from crdkeeper.apiserver.schema.rules import Rule, all_rules
from crdkeeper.cli.output.printing import print_page
from crdkeeper.core.composition import problem
from crdkeeper.core.lint.convention import Convention
from crdkeeper.core.lint.registry import GROUPS, all_conventions
from crdkeeper.core.lint.severity import Severity

_BEGINNING = """\
<!-- Made by `python -m generate.lint > docs/lint.md`; do not edit. -->

# What `crdkeeper lint` says about a CRD

`crdkeeper lint -f FILE|FOLDER|-` reports offline the errors that the API server (Kubernetes 1.37) would
report if you created the CRD: the same fields, in the same words, with the line in the file. A test sends
thousands of variants of CRDs to a real API server and compares the results. It also reports what the API
server accepts although it causes trouble: violated conventions of the Kubernetes API, and pitfalls.

```
widgets.yaml:14:7: error[scope]: spec.scope: Required value
    why: Objects live in namespaces or in the cluster.
    hint: Set spec.scope to Namespaced or Cluster.
widgets.yaml:31:19: warning[pattern-anchors]: v1:.spec.zone: [a-z0-9-]+ matches anywhere
```

| severity | meaning |
|---|---|
| error | the API server refuses it, or accepts it although it cannot work |
| warning | it is likely to cause trouble |
| info | a matter of style, or something the author can judge better; shown with `--all` |

One mistake is one line. Warnings and infos of the same kind in a CRD share a line. So do equal errors, with
the lines of the other places; columns whose paths have the same mistake; rules of one object that misspell
the same field; and the costs of rules with their total. Where several CRDs of one group have the same finding
about the same field, or several files the same CRD, the first one's line names the others. Of the other
errors of one rule in a CRD the first 500 are printed. `-o json` lists each finding: those of one mistake have
the same number as `cause`. In `-o sarif` their places are related locations. What follows from another
finding, such as a column below a `$ref`, is not reported beside it.

The same finding in several versions is one finding that names them (`versions` in JSON), and so is one in a
type that stands at many fields (`fields`). What can no longer be changed is only info: names of kinds and
resources, names of fields in a beta or stable version, and everything in a deprecated version.

Conventions name a field like `v1:.spec.ports[*].name`: the version, and the path in an object; the version
alone is the root of its schema. The API server's errors use the server's own paths: what all versions share
is under `spec.validation`, `spec.subresources`, `spec.additionalPrinterColumns` or `spec.selectableFields`.
In a CompositeResourceDefinition they are named as in the file.
The line is the field's line in the file or, if the field is missing, that of the nearest enclosing field.
Where the server's message prints an internal data structure as the invalid value, the value is omitted.

| exit code | meaning |
|---|---|
| 0 | no errors (there may be warnings, and things that were not checked); `--fail-on` changes the limit |
| 1 | errors |
| 2 | a file, the cluster or the configuration could not be read, or there is no CRD (`--allow-none`) |

`-o json` lists everything, up to 100,000 findings, the most severe first (`notListed` counts the others);
fields may be added, but not removed. `-o sarif`, with at most 25,000 results, is for code hosts: it has
errors, warnings and, as notes, infos and what was not checked. [In a pipeline](pipeline.md) shows how to use
both.

## Objects beside CRDs

Columns are tried on objects in the checked files: `column-empty` and `column-invalid` say what `kubectl get`
would show for them. At most 50 objects of a kind are used, none with more than 20,000 values, and a million
values in total. All columns together visit two million values: nothing is said about one that needs more
than its share. Objects without a status need not have what a controller sets. CRDs from standard input are
not tried.

## The CRDs of a cluster

`crdkeeper lint` without a file checks the CRDs of the cluster: all, those named (`crdkeeper lint
widgets.example.com`) or those with labels (`-l app=widgets`). The conditions by which the API server itself
reports problems are included (`server-condition`); configuration, `--rules` and the annotation below apply to
them as to other findings. An error from the API server means that the CRD could not be created again as it
is, for example from a backup. Checks that concern only files, such as their size, are skipped.

## Configuration

Put `.crdkeeper.yaml` in the folder of the file or in one above it; only the nearest one is used. `--config`
selects another. For standard input and for a cluster, the search starts in the working folder. The section
`diff` belongs to [`crdkeeper diff`](diff.md#configuration).

```yaml
lint:
  all: true                 # show infos
  rules: [default, limits]  # groups and ids, as for --rules
  severity:                 # by id: error, warning, info (shown then) or off
    duration-unit: off
    description: warning
  forbid: [nullable]        # keywords that schemas must not have (forbidden-keyword)
  exclude:                  # globs from the folder of this file; ** crosses folders
  - vendor/**
```

The severity of the API server's errors cannot be changed. An invalid configuration is an error that names
the line, and a folder that cannot be read is one unless a glob matches it.

Where the API server stops at an error (a missing type hides defaults, and these hide rules), the check goes
on. What it says only once the other errors are fixed is reported and marked (`"behind": true` in JSON).
What fixing them may change is not reported.

## Choosing rules

`--rules` takes groups and ids, separated by commas, from left to right. A group or an id reports those rules
with their infos, `default` is what is reported without the option, `all` is everything, and `-` before a name
takes its rules away. `--all` adds the infos of all rules that are not taken away.

```
crdkeeper lint -f config/crd --rules default,lists     # also the infos about lists
crdkeeper lint -f config/crd --rules=-secret-text      # all warnings but these
crdkeeper lint -f config/crd --rules server            # only the API server's own rules
```

| group | about | rules |
|---|---|---|
{groups}
Errors of the API server are always reported.

## A baseline

A project with many findings can accept those that it has, so that only new ones fail:

```
crdkeeper lint -f config/crd --write-baseline crdkeeper-baseline.json
crdkeeper lint -f config/crd --baseline crdkeeper-baseline.json --fail-on warning
```

The file lists the CRD, the rule and the field, and neither line nor version: a finding stays known when lines
move, when a file is renamed, and in a version that you add. It lists what is reported, so write it with the
same `--all` and `--rules`. Entries for which nothing is found any more are reported as stale, and do not
fail. Entries of CRDs that were not checked are left alone. In JSON, `baseline` has what is known and what is
stale; in SARIF, known findings are suppressed.

## Ignoring a finding

With a reason, at the field: on its line or above it.

```yaml
              # crdkeeper:ignore=list-of-named the order counts, and there is one owner
              steps:
                type: array
              timeout: # crdkeeper:ignore=duration-text,description parsed by our webhook
                type: string
```

Or in the CRD itself, where it survives when the CRD is generated again. `*` matches anything, you can omit
the version, and `.` is the root:

```yaml
metadata:
  annotations:
    lint.crdkeeper.dev/ignore: |
      duration-text .spec.*Timeout: parsed by our webhook
      list-of-named v1alpha1:.spec.steps: the order counts, and there is one owner
```

An unknown id or a missing reason is an error (`ignore-invalid`), and so is an annotation of more than 1,000
lines. A suppression that no finding needs is a warning (`ignore-unused`).

A CompositeResourceDefinition has the annotation in `spec.metadata.annotations`, as the CRD will have it.

## What is not checked

These are counted, and never reported as passed:

- `cel`: expressions for which it is uncertain whether the API server compiles them, and at what cost;
- `default-value`: whether a default is valid, if that is uncertain. Unknown fields in a default are always
  found;
- `pattern`, `conversion`, `api-approval`: unusual expressions and URLs;
- `metadata`: finalizers, owner references and generated names.

Also not checked is what depends on the cluster (another CRD with the same names, if it is not among the
files) or on the old CRD in an update. Conventions apply to versions that are served or stored, at where a
field is, and what it is called: types of Kubernetes that are embedded (a pod's spec, a label selector) are
recognized and skipped. Columns are followed through fields, indexes, wildcards and filters, and not
through more of kubectl's template language. Files up to 16 MiB, 300 levels and 300,000 values (aliases
expanded) are read.

## Conventions
"""

_COMPOSITES = """
## CompositeResourceDefinitions

A [CompositeResourceDefinition](composites.md) is checked like the CRD that it stands for, at the lines of its
own file. In addition:
"""
_SERVER = """
## The API server's rules

Each is an error, unless stated otherwise.
"""
_ORDER = (Severity.ERROR, Severity.WARNING, Severity.INFO)


def page() -> str:
    conventions = all_conventions()
    groups = "".join(f"| `{name}` | {about} | {ids} |\n" for name, about, ids in _groups())
    rows = []
    for severity in _ORDER:
        links = [f"[{each.id}](#{each.id})" for each in conventions if each.severity is severity]
        rows.append(f"| {severity.value} | {', '.join(links)} |\n")
    table = "\n| severity | findings |\n|---|---|\n" + "".join(rows)
    own = [_section(each.id, f"{_title(each)}{each.why}", each.remedy) for each in conventions]
    composites = [_section(each.id, each.why, each.remedy) for each in problem.ALL]
    servers = [_section(each.id, f"{_exception(each)}{each.why}", each.remedy) for each in all_rules()]
    head = _BEGINNING.replace("{groups}", groups) + table + "".join(own)
    return head + _COMPOSITES + "".join(composites) + _SERVER + "".join(servers)


def _groups() -> Iterator[tuple[str, str, str]]:
    """The groups: name, what each is about, and links to its rules."""
    yield "server", "what the API server itself says", "[all of its rules](#the-api-servers-rules)"
    yield (
        "composites",
        "CompositeResourceDefinitions",
        ", ".join(f"[{each.id}](#{each.id})" for each in problem.ALL),
    )
    for name, about in GROUPS.items():
        ids = ", ".join(f"[{each.id}](#{each.id})" for each in all_conventions() if each.group == name)
        yield name, about, ids


def _title(convention: Convention) -> str:
    milder = convention.severity_in(stable=True) is not convention.severity
    stable = "; info in a beta or stable version" if milder else ""
    otherwise = f"; {convention.otherwise}" if convention.otherwise else ""
    return f"*{convention.severity.value}{stable}{otherwise}* "


def _exception(rule: Rule) -> str:
    return f"*{rule.otherwise}* " if rule.otherwise else ""


def _section(id: str, why: str, remedy: str) -> str:
    return f"\n### {id}\n\n{why}\n\nWhat to do: {remedy}\n"


if __name__ == "__main__":
    print_page(page())
