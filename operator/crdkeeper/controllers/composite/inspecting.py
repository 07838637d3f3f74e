"""Looks at composites as the composer does, but with the rights of whoever asks, and without a write."""

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, Final

from crdkeeper.cluster.resources.access import Right
from crdkeeper.cluster.resources.composed import get_object
from crdkeeper.cluster.resources.compositions import get_composition_revision
from crdkeeper.cluster.resources.kindpaths import KindPaths, ServedKind
from crdkeeper.cluster.transport.client import ApiError, Client, Unreachable
from crdkeeper.controllers.composite.accounts import Actor
from crdkeeper.controllers.composite.compiling import Compiled, CompiledRevisions
from crdkeeper.controllers.composite.failures import Failures
from crdkeeper.controllers.composite.reconciling import CompositePass
from crdkeeper.controllers.composite.report import PassReport
from crdkeeper.controllers.composite.room import ObjectMemory
from crdkeeper.controllers.rights import KnownRights
from crdkeeper.core.composites.standing import PassOutcome
from crdkeeper.core.composites.tree import TracedComposite, TracedObject, is_composite, traced
from crdkeeper.core.diagnosis.verdict import Verdict
from crdkeeper.core.revisions.content import seen_revision
from crdkeeper.core.revisions.retention import running_by
from crdkeeper.core.templates.kinds import group_of

MOST_LEVELS: Final = 10
"""Of composites in composites that are followed."""
MOST_COMPOSITES: Final = 200
"""That are followed in total."""


class AskersRights(KnownRights):
    """Notes what a person may not do; what the composer's role lacks is another question."""

    def __init__(self, client: Client) -> None:
        super().__init__(client)
        self.denied: set[tuple[str, str]] = set()
        """Groups and plurals of which something was refused."""

    async def missing(self, rights: Sequence[Right]) -> list[Right]:
        """None that the composer lacks."""
        self.denied |= {(each.group, each.resource) for each in rights}
        return []

    def remedy(self, message: str, *verbs: str) -> str:
        """The rule to add if the API server's message is about a missing right; empty if it is not."""
        for group, plural in sorted(self.denied):
            if f'resource "{plural}" in API group "{group}"' in message:
                return f"You need the rule {rule(group, plural, *verbs)}"
        return ""


def rule(group: str, plural: str, *verbs: str) -> str:
    """A rule of a role."""
    return f'{{apiGroups: ["{group}"], resources: [{plural}], verbs: [{", ".join(verbs)}]}}'


class Inspection:
    """Looks at one composite, and at those that it is composed of."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._served = KindPaths(client)
        self._rights = AskersRights(client)
        self._compiled = CompiledRevisions(client, tuple)
        self._memory = ObjectMemory()
        self._seen: set[str] = set()
        """Composites by their uids: those that others write may be composed of each other."""

    async def trace(self, kind: ServedKind, value: dict[str, Any]) -> TracedComposite:
        """The tree of a composite. Raises ApiError and Unreachable if it cannot be read itself."""
        self._seen.add(value["metadata"]["uid"])
        root, children = await self._look(kind, value)
        waiting = deque((child, live, 1) for child, live in children)
        while waiting:
            node, live, level = waiting.popleft()
            uid = live["metadata"]["uid"]
            if uid in self._seen:
                continue
            if level >= MOST_LEVELS or len(self._seen) >= MOST_COMPOSITES:
                node.message = f"{node.message}. " if node.message else ""
                node.message += "It is a composite that is not followed: trace it by itself"
                continue
            self._seen.add(uid)
            try:
                at = await self._served.find(node.api_version, node.kind)
                if at is None:
                    continue
                node.composite, children = await self._look(at, dict(live))
            except (ApiError, Unreachable) as error:
                node.composite = traced(live, "", None, [f"Its objects cannot be read: {error}"])
                continue
            waiting.extend((child, of, level + 1) for child, of in children)
        return root

    async def _look(
        self, kind: ServedKind, value: dict[str, Any]
    ) -> tuple[TracedComposite, list[tuple[TracedObject, Mapping[str, Any]]]]:
        """One composite, and those of its objects that are composites."""
        remarks: list[str] = []
        composition, compiled = await self._revision(value, remarks)
        if compiled is not None and compiled.composition.api_version != kind.api_version:
            of = compiled.composition.api_version
            kind = ServedKind(of, kind.kind, kind.plural, kind.namespaced)
            metadata = value["metadata"]
            again = await get_object(self._client, kind, metadata.get("namespace", ""), metadata["name"])
            value = again if again is not None else value
            compiled = compiled if again is not None else None
        outcome = await self._outcome(kind, value, compiled, remarks)
        tree = traced(value, composition, outcome, remarks)
        found = outcome.found.objects if outcome is not None else {}
        objects = [each for resource in tree.resources for each in resource.objects]
        known = ((each, found.get(each.identity)) for each in objects)
        return tree, [(each, live) for each, live in known if live is not None and is_composite(live)]

    async def _outcome(
        self, kind: ServedKind, value: dict[str, Any], compiled: Compiled | None, remarks: list[str]
    ) -> PassOutcome | None:
        share = self._memory.share("")
        actor = Actor(self._client, self._rights)
        work = CompositePass(
            self._client, self._served, Failures(), share, actor, kind, kind, value, PassReport()
        )
        try:
            await work.inspect(running_by(value), compiled)
        except (ApiError, Unreachable, ValueError) as error:
            remarks.append(f"The objects cannot be read: {error}")
        finally:
            share.end()
        if work.outcome is not None:
            found = work.outcome.found
            found.unreadable |= {
                key: self._told(each, "get", "list") for key, each in found.unreadable.items()
            }
            found.unread |= {key: self._told(each, "get") for key, each in found.unread.items()}
        return work.outcome

    def _told(self, verdict: Verdict, *verbs: str) -> Verdict:
        """The same, with the rule that is missing."""
        remedy = self._rights.remedy(verdict.message, *verbs)
        return Verdict(verdict.reason, f"{verdict.message.rstrip('.')}. {remedy}") if remedy else verdict

    async def _revision(self, value: Mapping[str, Any], remarks: list[str]) -> tuple[str, Compiled | None]:
        """The Composition by which a composite runs, and its revision; None if that cannot be used."""
        name = running_by(value)
        if not name:
            return "", None
        try:
            found = await get_composition_revision(self._client, name)
            if found is None:
                remarks.append(f"The CompositionRevision {name} is gone. {_LISTED}")
                return "", None
            seen = seen_revision(found)
            of = group_of(seen.api_version), seen.kind
            if of != (group_of(value["apiVersion"]), value["kind"]):
                remarks.append(f"The CompositionRevision {name} is for {seen.kind}. {_LISTED}")
                return "", None
            compiled = await self._compiled.of(seen)
        except ApiError as error:
            own = rule("crdkeeper.dev", "compositionrevisions", "get")
            remedy = f" You need the rule {own}." if error.code == 403 else ""
            remarks.append(f"The CompositionRevision {name} cannot be read: {error}.{remedy} {_LISTED}")
            return "", None
        except (Unreachable, KeyError) as error:
            remarks.append(f"The CompositionRevision {name} cannot be read: {error}. {_LISTED}")
            return "", None
        if isinstance(compiled, Verdict):
            remarks.append(f"{compiled.message.rstrip('.')}. {_LISTED}")
            return seen.composition, None
        return seen.composition, compiled


_LISTED: Final = "So only what the status lists is shown, and nothing of what waits or is excluded."
