"""The page about `crdkeeper lint`, made from the rules themselves: `python -m generate.lint`."""

from crdkeeper.apiserver.schema.rules import all_rules
from crdkeeper.cli.output.printing import print_page
from crdkeeper.core.lint.registry import Convention, all_conventions
from crdkeeper.core.lint.severity import Severity

_BEGINNING = """\
<!-- Made by `python -m generate.lint > docs/lint.md`; do not edit. -->

# What `crdkeeper lint` says of a CRD

`crdkeeper lint -f FILE|FOLDER|-` says offline what the API server (Kubernetes 1.37) says of a CRD when it
is created: the same fields, in the same words, with the line in the file. A test sends thousands of variants
of CRDs to a real API server and compares. It also says what the API server accepts and users stumble over:
the conventions of the Kubernetes API, and traps.

```
widgets.yaml:14:7: error[scope]: spec.scope: Required value
    why: Objects live in namespaces or in the cluster.
    hint: Set spec.scope to Namespaced or Cluster.
widgets.yaml:31:19: warning[duration-text]: v1:.spec.timeout: takes any text for a duration
```

| severity | meaning |
|---|---|
| error | the API server refuses it; or it accepts it, and it cannot work |
| warning | somebody will stumble over it |
| info | a matter of taste, or of what the author knows better; shown by `--all` |

Warnings and infos of one kind in one CRD are put together; `-o json` lists each. A finding that is followed
by renaming a field is only info in a stable version (v1, v2), where it is too late for that.

A field is named `v1:.spec.ports[*].name` by conventions: the version, and the path in an object. In the API
server's errors it is named as the server names it: what all versions share is under `spec.validation`,
`spec.subresources`, `spec.additionalPrinterColumns` or `spec.selectableFields`. The line is where the file
has it, or the nearest field around it if it is missing. Where the server's message dumps its own data
structure as the bad value, the value is left out.

| exit code | meaning |
|---|---|
| 0 | no errors (there may be warnings, and checks that were not made); `--fail-on` sets another limit |
| 1 | errors |
| 2 | a file, the cluster or the configuration could not be read, or there is no CRD (`--allow-none`) |

`-o json` lists everything; fields are only ever added. `-o sarif` is for code hosts: errors, warnings, and as
notes infos and what was not checked. [In a pipeline](pipeline.md) shows both at work.

## Objects beside CRDs

Objects that stand in the files which are checked are what columns are tried on: `column-empty` and
`column-invalid` say what `kubectl get` would show of them, at most 50 of a kind and 5,000 in all. What a
controller sets is not expected of an object without a status. CRDs of standard input are not tried.

## The CRDs of a cluster

`crdkeeper lint` without a file checks the CRDs of the cluster: all, those named (`crdkeeper lint
widgets.example.com`) or those with labels (`-l app=widgets`). The conditions by which the API server itself
says that something is wrong come with them (`server-condition`). An error of the API server's means that the
CRD could not be created anew as it is, for instance from a backup. What is about files only, such as their
size, is left out.

## Configuration

`.crdkeeper.yaml` lies in the folder of the file or in one above; the nearest counts, alone. `--config` names
another. For standard input and for a cluster it is looked for from the working folder.

```yaml
lint:
  all: true                 # show infos
  severity:                 # by id: error, warning, info (shown then) or off
    duration-unit: off
    description: warning
  exclude:                  # globs from the folder of this file; ** crosses folders
  - vendor/**
```

The API server's errors are what they are. What is not understood here is an error that names the line.

## Ignoring a finding

With a reason, at the field: on its line or above it.

```yaml
              # crdkeeper:ignore=list-of-named the order counts, and there is one owner
              steps:
                type: array
              timeout: # crdkeeper:ignore=duration-text,description parsed by our webhook
                type: string
```

Or in the CRD itself, which survives its being generated; `*` stands for anything, and the version may be left
out:

```yaml
metadata:
  annotations:
    lint.crdkeeper.dev/ignore: |
      duration-text .spec.*Timeout: parsed by our webhook
      list-of-named v1alpha1:.spec.steps: the order counts, and there is one owner
```

An unknown id or a missing reason is an error (`ignore-invalid`), and what no finding needs any more a warning
(`ignore-unused`).

## What is not checked

It is counted and never taken as passed:

- `cel`: expressions of which it is not certain whether the API server compiles them, and at which cost;
- `default-value`: whether a default is valid, where that is not certain. That it has no unknown fields is
  always checked;
- `pattern`, `conversion`, `api-approval`: expressions and URLs out of the ordinary;
- `metadata`: finalizers, owner references and generated names.

Not checked either is what depends on the cluster (another CRD that has the same names, if it is not among
the files) and on the old CRD in an update. Conventions look at versions that are served or stored, at where a
field is, and what it is called: types of Kubernetes that are embedded (a pod's spec, a label selector) are
recognised and left alone. Columns are followed through fields, indexes, wildcards and filters, and not
through more of kubectl's template language. Files up to 16 MiB, 300 levels and 300,000 values (aliases
expanded) are read.

## Conventions
"""

_SERVER = """
## The API server's rules

Each is an error, if not said otherwise.
"""
_ORDER = (Severity.ERROR, Severity.WARNING, Severity.INFO)


def page() -> str:
    """The whole page."""
    conventions = all_conventions()
    rows = []
    for severity in _ORDER:
        links = [f"[{each.id}](#{each.id})" for each in conventions if each.severity is severity]
        rows.append(f"| {severity.value} | {', '.join(links)} |\n")
    table = "\n| severity | findings |\n|---|---|\n" + "".join(rows)
    own = [_section(each.id, f"{_title(each)}{each.why}", each.remedy) for each in conventions]
    servers = [_section(each.id, each.why, each.remedy) for each in all_rules()]
    return _BEGINNING + table + "".join(own) + _SERVER + "".join(servers)


def _title(convention: Convention) -> str:
    stable = "; info in a stable version" if convention.renames else ""
    return f"*{convention.severity.value}{stable}* "


def _section(id: str, why: str, remedy: str) -> str:
    return f"\n### {id}\n\n{why}\n\nWhat to do: {remedy}\n"


if __name__ == "__main__":
    print_page(page())
