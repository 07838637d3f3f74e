"""What a new CRD does to one object, predicted by the engine of `apiserver/objects`."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from crdkeeper.apiserver.objects.effort import SharedAllowance
from crdkeeper.apiserver.objects.jsonvalue import same, stored
from crdkeeper.apiserver.objects.objectnode import ObjectNode
from crdkeeper.apiserver.objects.objectschema import Admitted
from crdkeeper.apiserver.objects.scalevalidation import check_scale
from crdkeeper.apiserver.schema.finding import UndecidedValue
from crdkeeper.apiserver.schema.violation import Violation
from crdkeeper.core.conversion.nesting import length
from crdkeeper.core.conversion.values import Unconvertible
from crdkeeper.core.rehearsal.definition import NONE, CompiledDefinition, NotRehearsed, version_of
from crdkeeper.core.rehearsal.differences import Difference, How, differences, general
from crdkeeper.core.rehearsal.effect import Effect, EffectKind
from crdkeeper.core.rehearsal.hiddendefaults import least_stored
from crdkeeper.core.rehearsal.losses import lost_by_writing
from crdkeeper.core.removedversions import APPLY_ANSWER

Json = Any
_TOO_LONG: Final = "to predict all objects may take too long"
_NOT_EVALUATED = "<nil>"
_OWN_METADATA = ("name", "namespace", "generateName", "labels", "annotations")
_KINDS = {How.GONE: EffectKind.PRUNED, How.NEW: EffectKind.DEFAULTED, How.CHANGED: EffectKind.CHANGED}


@dataclass(slots=True)
class Prediction:
    """What will happen to one object; versions without an entry are not predicted."""

    reads: dict[str, Admitted] = field(default_factory=dict)
    """The response to a GET, by version; instead of an object there may be an error."""
    writes: dict[str, Admitted] = field(default_factory=dict)
    """The response to an update without changes, by version."""
    creation: Admitted | None = None
    """The result for the object, including status, if it is sent again to a CRD without subresources."""
    recreation: Admitted | None = None
    """The response to a creation of the object; status is ignored if it is a subresource."""
    effects: list[Effect] = field(default_factory=list)

    @property
    def creation_is_certain(self) -> bool:
        """Whether the engine could make all of the API server's checks of a creation."""
        return self.creation is not None and not self.creation.unchecked


def as_sent(obj: Json) -> Json:
    """The object as kept in a file: without what the API server sets."""
    metadata = obj.get("metadata") or {}
    return {**obj, "metadata": {key: metadata[key] for key in _OWN_METADATA if key in metadata}}


class Judge:
    """Compares the current CRD with a new one. `old` is None if the current one is unknown.

    The work on all objects that need more than their share has a limit; an object that exceeds it is not
    predicted.
    """

    def __init__(
        self,
        old: CompiledDefinition | None,
        new: CompiledDefinition,
        allowance: SharedAllowance | None = None,
    ) -> None:
        """The `allowance` may be shared with the judges of other CRDs."""
        self.old = old
        self.new = new
        self._allowance = allowance or SharedAllowance()

    def creation_version(self, obj: Json) -> str | None:
        """Where the object would be created again: at its own version, as long as that is served."""
        version = version_of(obj)
        return version if version in self.new.served else self.new.endpoint

    def predict(self, obj: Json) -> Prediction:
        """Predict the effects on an object, as it is read today at the version that it is stored in."""
        try:
            with self._allowance.for_one(length(obj)) as allowance:
                found = self._predict(obj)
                least = self._least(obj)
                if least is not None:
                    found.effects += _disagreement(found, self._predict(least))
        except RecursionError:
            return _not_predicted(obj, "the object nests too deep")
        except UndecidedValue:
            return _not_predicted(obj, _TOO_LONG)
        if allowance.is_exceeded:
            # What was left unchecked may have changed any part of it.
            return _not_predicted(obj, _TOO_LONG)
        found.effects = self.placed([*found.effects, *self._applied(obj)])
        return found

    def placed(self, effects: Iterable[Effect]) -> list[Effect]:
        """The effects, marking those that affect only users of a version that is not served today.

        An object that cannot be converted to a new storage version is not one of them: then no version can be
        written.
        """
        if self.old is None:
            return list(effects)
        today = {"", *self.old.served}
        return [
            each
            if each.version in today
            or (each.kind is EffectKind.UNCONVERTIBLE and each.version == self.new.storage)
            else replace(each, at_new_version=True)
            for each in effects
        ]

    def _applied(self, obj: Json) -> list[Effect]:
        """Whether a server-side apply fails because managedFields name a removed version."""
        entries = (obj.get("metadata") or {}).get("managedFields") or ()
        named = {version_of(each) for each in entries if isinstance(each, dict)}
        known = self.old.versions if self.old is not None else named
        return [
            Effect(
                EffectKind.APPLY_FAILS,
                "metadata.managedFields",
                "",
                message := f'an entry names {each}: "{APPLY_ANSWER}: {self.new.group}/{each}"',
                message,
                "metadata.managedFields",
            )
            for each in sorted(named.intersection(known) - self.new.versions.keys())
        ]

    def _least(self, obj: Json) -> Json | None:
        """The object without what is perhaps not stored, if there is any."""
        source = version_of(obj)
        old = self.old.versions.get(source) if self.old is not None else None
        if old is None or old.schema is None:
            return None
        least = least_stored(obj, old.schema.node)
        return None if same(least, obj) else least

    def _predict(self, obj: Json) -> Prediction:
        found = Prediction()
        source = version_of(obj)
        for version in self.new.served:
            self._read(obj, version, found)
        self._compare(obj, source, found)
        for version, read in found.reads.items():
            if read.object is not None:
                self._write(read.object, version, found)
        self._after_write(obj, source, found)
        self._create(obj, found)
        return found

    def _read(self, obj: Json, version: str, found: Prediction) -> None:
        try:
            read = self.new.read(obj, version)
        except NotRehearsed:
            # A property of the CRD, which is reported once for all objects.
            return
        except Unconvertible as error:
            read = Admitted(None)
            found.effects.append(Effect(EffectKind.UNCONVERTIBLE, "", version, str(error), _bare(str(error))))
        found.reads[version] = read
        found.effects += [_refusal(EffectKind.UNREADABLE, each, version) for each in read.violations]
        found.effects += _left(read, version)

    def _compare(self, obj: Json, source: str, found: Prediction) -> None:
        for version, read in found.reads.items():
            if read.object is None:
                continue
            before, node = self._before(obj, source, version)
            if before is None:
                continue
            converted = version != source and not self._plain
            for each in differences(before, read.object, node):
                # What was absent before is not lost by a conversion, mostly of a new default.
                other = converted and each.how is not How.NEW
                kind = EffectKind.CONVERTED_DIFFERENTLY if other else _KINDS[each.how]
                found.effects.append(_effect(kind, each, version))

    @property
    def _plain(self) -> bool:
        """Whether the conversion changes only apiVersion, both before and after."""
        return self.new.strategy == NONE and (self.old is None or self.old.strategy == NONE)

    def _before(self, obj: Json, source: str, version: str) -> tuple[Json | None, ObjectNode | None]:
        """What is read at this version today, or should be read at a new one; None if unknown."""
        old = self.old
        known = self.new.versions[version].schema
        node = known.node if known is not None else None
        if old is None:
            return (obj, node) if version == source else (None, node)
        before = old.versions.get(version)
        if before is None:
            # At a new version, all of the object should be present.
            return (obj if self._plain else None), node
        if before.schema is not None:
            node = before.schema.node
        try:
            return old.read(obj, version).object, node
        except (NotRehearsed, Unconvertible):
            return None, node

    def _write(self, read: Json, version: str, found: Prediction) -> None:
        compiled = self.new.schema(version)
        written = _with_scale(compiled.rewrite(read), self.new.versions[version].scale)
        found.effects += [_refusal(EffectKind.WRITE_REFUSED, each, version) for each in _reported(written)]
        found.effects += _left(written, version)
        if written.object is not None and not written.violations:
            try:
                written.object = self._stored_and_read(written.object, version)
            except (NotRehearsed, Unconvertible):
                return
        found.writes[version] = written

    def _stored_and_read(self, obj: Json, version: str) -> Json | None:
        """The response for an accepted object, which is converted for storage and back."""
        kept = self.new.arrived(obj, self.new.storage)
        return self.new.read(kept.object, version).object if kept.object is not None else None

    def _after_write(self, obj: Json, source: str, found: Prediction) -> None:
        """What the next write loses, and would not lose today."""
        already = {each.exact for each in lost_by_writing(self.old, obj)} if self.old is not None else set()
        found.effects += [
            _effect(EffectKind.LOST_ON_WRITE, each, source)
            for each in lost_by_writing(self.new, obj)
            if each.exact not in already
        ]

    def to_send(self, obj: Json) -> Json | None:
        """The object as it would be created again, at the version where it would be; None if unknown.

        Raises Unconvertible.
        """
        version = self.creation_version(obj)
        if version is None:
            return None
        sent = as_sent(obj)
        if version == version_of(obj):
            return sent
        try:
            return stored(self.new.convert(sent, version))
        except NotRehearsed:
            return None

    def _create(self, obj: Json, found: Prediction) -> None:
        try:
            sent = self.to_send(obj)
        except Unconvertible:
            return  # it is reported where it is read
        if sent is None:
            return
        version = version_of(sent)
        compiled = self.new.versions[version]
        if compiled.schema is None:
            return
        whole = self._kept(_with_scale(compiled.schema.create(sent, whole=True), compiled.scale), version)
        found.creation = found.recreation = whole
        if compiled.has_status:
            admitted = _with_scale(compiled.schema.create(sent), compiled.scale)
            found.recreation = self._kept(admitted, version)
            said = {(str(each.path), each.message) for each in found.recreation.violations}
            found.effects += [
                _refusal(EffectKind.STATUS_REFUSED, each, version)
                for each in _reported(whole)
                if (str(each.path), each.message) not in said
            ]
        found.effects += [_refusal(EffectKind.REFUSED, each, version) for each in _reported(found.recreation)]
        found.effects += _left(whole, version)

    def _kept(self, admitted: Admitted, version: str) -> Admitted:
        """Includes the response for an accepted object: with a webhook, as if stored at this version."""
        if admitted.object is not None and not admitted.violations:
            try:
                if self.new.strategy == NONE:
                    admitted.object = self._stored_and_read(admitted.object, version)
                else:
                    admitted.object = self.new.read(admitted.object, version).object
            except NotRehearsed:
                admitted.object = None
        return admitted


def _not_predicted(obj: Json, reason: str) -> Prediction:
    return Prediction(effects=[Effect(EffectKind.INDETERMINATE, "", version_of(obj), reason, reason)])


def _with_scale(admitted: Admitted, scale: Mapping[str, Any] | None) -> Admitted:
    if admitted.object is not None:
        admitted.violations += check_scale(admitted.object, scale)
    return admitted


def _reported(admitted: Admitted) -> list[Violation]:
    """Without the one that only says that there may be more."""
    found = [each for each in admitted.violations if str(each.path) != _NOT_EVALUATED]
    return found or admitted.violations


def _refusal(kind: EffectKind, violation: Violation, version: str) -> Effect:
    path = str(violation.path)
    cause = _bare(": ".join(filter(None, (violation.kind, violation.detail))))
    return Effect(kind, general(path), version, violation.message, cause, path)


def _left(admitted: Admitted, version: str) -> list[Effect]:
    if admitted.violations:
        return []
    return [
        Effect(EffectKind.INDETERMINATE, general(str(each.path)), version, each.reason, _bare(each.reason))
        for each in admitted.unchecked
    ]


def _effect(kind: EffectKind, difference: Difference, version: str) -> Effect:
    return Effect(kind, difference.field, version, exact=difference.exact)


def _bare(message: str) -> str:
    return general(message)


def _disagreement(one: Prediction, other: Prediction) -> list[Effect]:
    """What cannot be predicted because it depends on which defaults are stored."""
    reason = "whether the default that is read here is stored decides what becomes of it"
    found = []
    for version, read in one.reads.items():
        unlike = other.reads.get(version)
        if unlike is None or read.object is None or unlike.object is None:
            continue
        for each in differences(read.object, unlike.object):
            found.append(Effect(EffectKind.INDETERMINATE, each.field, version, reason, reason, each.exact))
    if not found:
        # Each at its version: what differs only at a new one concerns nobody who exists.
        differ = _keys(one.effects) ^ _keys(other.effects)
        versions = {"" if kind is EffectKind.UNCONVERTIBLE else version for kind, *_, version in differ}
        found = [Effect(EffectKind.INDETERMINATE, "", each, reason, reason) for each in sorted(versions)]
    return found


def between_views(one: Prediction, other: Prediction, version: str) -> list[Effect]:
    """What cannot be predicted because the object may be stored in `version` instead of the one of `one`."""
    if _keys(one.effects) == _keys(other.effects):
        return []
    reason = f"what becomes of it depends on whether it is stored in {version}: migrate the objects first"
    return [Effect(EffectKind.INDETERMINATE, "", version, reason, reason)]


def _keys(effects: Iterable[Effect]) -> set[tuple[EffectKind, str, str, str]]:
    return {(*each.key, each.version) for each in effects}


def new_effects(obj: Json, then: Judge, today: Judge) -> list[Effect]:
    """The effects on an object that the present CRD does not have: `today` compares that CRD with itself.

    A field that is refused already, for whatever reason, is not refused anew.
    """
    found = then.predict(obj).effects
    if not any(each.kind.is_harm or each.kind is EffectKind.INDETERMINATE for each in found):
        return found
    effects = today.predict(obj).effects
    known, refused = _keys(effects), {_refused(each) for each in effects if each.kind.is_refusal}
    return [
        each for each in found if (*each.key, each.version) not in known and _refused(each) not in refused
    ]


def _refused(effect: Effect) -> tuple[EffectKind, str, str]:
    return effect.kind, effect.exact, effect.version
