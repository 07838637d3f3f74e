"""The page about `crdkeeper upgrade-manifest`, made from what it can have to say."""

from crdkeeper.cli.output.printing import print_page
from crdkeeper.core.upgrade.topics import Topic, all_topics

_BEGINNING = """\
<!-- Made by `python -m generate.upgrademanifest > docs/upgrade-manifest.md`; do not edit. -->

# CRDs of v1beta1, rewritten for v1

Since Kubernetes 1.22 the API server takes no manifest of `apiextensions.k8s.io/v1beta1` any more.
`crdkeeper upgrade-manifest FILE` prints the manifest for v1 and says, with the line in the old file, what a
person must decide:

```
crdkeeper upgrade-manifest old.yaml > new.yaml
crdkeeper lint -f new.yaml
```

The meaning is kept. What all versions shared is copied to each version, and unknown fields are kept if they
were kept before. v1 wants a structural schema: types that are missing are added where the keywords beside
them leave no choice. Comments are not carried over. CRDs of v1 in the same file stay as they are; other
objects are left out.

| exit code | meaning |
|---|---|
| 0 | nothing is left to do |
| 1 | something must be decided, or the API server would still refuse a manifest (the messages say what) |
| 2 | something could not be read, or is no CRD |
"""


def page() -> str:
    """The whole page."""
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
