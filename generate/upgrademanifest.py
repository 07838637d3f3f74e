"""Generates the page about `crdkeeper upgrade-manifest` from its possible messages."""

from crdkeeper.cli.output.printing import print_page
from crdkeeper.core.upgrade.topics import Topic, all_topics

_BEGINNING = """\
<!-- Made by `python -m generate.upgrademanifest > docs/upgrade-manifest.md`; do not edit. -->

# Rewriting v1beta1 CRDs for v1

Since Kubernetes 1.22, the API server no longer accepts manifests of `apiextensions.k8s.io/v1beta1`.
`crdkeeper upgrade-manifest FILE` prints the manifest for v1 and lists, with the line in the old file, what
you must decide:

```
crdkeeper upgrade-manifest old.yaml > new.yaml
crdkeeper lint -f new.yaml
```

The CRD keeps its meaning. What all versions shared is copied to each version, and unknown fields are
preserved if they were before. v1 requires a structural schema: missing types are added where the other
keywords leave no choice. Comments are not copied. v1 CRDs in the same file stay unchanged; other objects are
skipped.

`lint`, `diff`, `rehearse` and `convert` read a v1beta1 manifest too, and say so: in the form to which API
servers before 1.22 converted it, with the lines of your file. Nothing is repaired there, so `lint` lists what
v1 refuses.

| exit code | meaning |
|---|---|
| 0 | nothing is left to do |
| 1 | you must decide something, or the API server would still refuse a manifest (the messages say what) |
| 2 | something could not be read, or is not a CRD |
"""


def page() -> str:
    every = all_topics()
    return "".join(
        (
            _BEGINNING,
            "\n## What is left to you\n",
            *(_section(each) for each in every if each.open),
            "\n## What is done for you\n",
            *(_section(each) for each in every if not each.open),
        )
    )


def _section(topic: Topic) -> str:
    remedy = f"\n\nWhat to do: {topic.remedy}" if topic.remedy else ""
    return f"\n### {topic.id}\n\n{topic.why}{remedy}\n"


if __name__ == "__main__":
    print_page(page())
