"""The page about `crdkeeper lint`, made from the rules themselves: `python -m crdkeeper.cli.lintdocs`."""

from crdkeeper.core.schema.rules import all_rules

_BEGINNING = """\
<!-- Made by `python -m crdkeeper.cli.lintdocs > docs/lint.md`; do not edit. -->

# What `crdkeeper lint` says of a CRD

`crdkeeper lint -f FILE|FOLDER|-` says offline what the API server (Kubernetes 1.37) says of a CRD when it
is created: the same fields, in the same words, with the line in the file. A test sends thousands of variants
of CRDs to a real API server and compares.

```
widgets.yaml:14:7: error[scope]: spec.scope: Required value
    hint: Set spec.scope to Namespaced or Cluster.
```

A field is named as the API server names it: what all versions share is under `spec.validation`,
`spec.subresources`, `spec.additionalPrinterColumns` or `spec.selectableFields`. The line is where the file
has it, or the nearest field around it if it is missing. Where the server's message dumps its own data
structure as the bad value, the value is left out.

| exit code | meaning |
|---|---|
| 0 | no errors (there may be warnings, and checks that were not made) |
| 1 | errors: the API server refuses a CRD |
| 2 | something could not be read, or there is no CRD in it |

`-o json` lists everything. `-o sarif` is for code hosts: errors, warnings, and as notes what was not checked.

## What is not checked

It is counted and never taken as passed:

- `cel`: whether the expressions of `x-kubernetes-validations` compile, and what they cost;
- `default-value`: whether a default is valid, where that is not certain (formats, patterns, allOf …, embedded
  resources, several errors at once). That it has no unknown fields is always checked;
- `pattern`, `conversion`, `api-approval`: expressions and URLs out of the ordinary;
- `metadata`: finalizers, owner references and generated names.

Not checked either is what depends on the cluster (another CRD that has the same names) and on the old CRD
in an update. Files up to 16 MiB, 300 levels and 300,000 values (aliases expanded) are read. Patterns are
never run.

## Findings
"""


def page() -> str:
    """The whole page."""
    sections = [f"\n### {each.id}\n\n{each.why}\n\nWhat to do: {each.remedy}\n" for each in all_rules()]
    return _BEGINNING + "".join(sections)


if __name__ == "__main__":
    print(page(), end="")
