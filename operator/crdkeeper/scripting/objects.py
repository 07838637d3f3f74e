"""What all kinds have in common as objects of pykube-ng: typed conditions, and waiting for them."""

from collections.abc import Callable, Collection
from contextlib import closing
from typing import ClassVar, Final, Self

from pykube.http import HTTPClient
from pykube.objects import APIObject

from crdkeeper.api.meta import API_VERSION, READY, STALLED, Condition, ConditionStatus, find_condition
from crdkeeper.scripting.connecting import connect
from crdkeeper.scripting.errors import ConditionFailed, Deleted, TimedOut
from crdkeeper.scripting.following import Deadline, Following

WAIT_SECONDS: Final = 600.0


class CrdkeeperObject(APIObject):
    """What all kinds have in common."""

    version = API_VERSION
    endpoint: ClassVar[str]
    kind: ClassVar[str]

    @classmethod
    def named(cls, name: str, *, api: HTTPClient | None = None) -> Self:
        """The object with that name, which need not exist yet. Sends no request."""
        return cls(
            api or connect(), {"apiVersion": cls.version, "kind": cls.kind, "metadata": {"name": name}}
        )

    def create(self) -> Self:
        """Create it in the cluster, and return it. Raises HTTPError of pykube, with 409 if it exists."""
        APIObject.create(self)
        return self

    def reload(self) -> Self:
        """Read it again, and return it. Raises HTTPError of pykube, with 404 if it does not exist."""
        APIObject.reload(self)
        return self

    @property
    def conditions(self) -> list[Condition]:
        """The conditions as last read."""
        found = self.obj.get("status", {}).get("conditions") or []
        return [Condition.model_validate(each) for each in found]

    def condition(self, type_: str) -> Condition | None:
        """One of them; None if the object has no condition of that type."""
        return find_condition(self.conditions, type_)

    @property
    def ready(self) -> bool:
        """Whether Ready is True for the object's current spec, as last read."""
        found = self._current(READY)
        return found is not None and found.status == "True"

    def wait(
        self,
        condition: str = READY,
        status: ConditionStatus = "True",
        *,
        timeout: float = WAIT_SECONDS,
        give_up_on: Collection[str] | None = None,
    ) -> Self:
        """Wait until a condition has a status; the object is then as it was at that moment. Returns itself.

        `timeout` is in seconds. A condition counts if it was observed for the object's current spec. An
        object that does not exist yet is waited for. By default a wait ends when the object is Stalled;
        instead `give_up_on` can name reasons, of the condition or of Ready, for which waiting is pointless.

        Raises ConditionFailed if the condition will not come true by itself: the object's work has ended, it
        is Stalled, or has such a reason. Raises TimedOut, Deleted, and HTTPError of pykube if the API server
        refuses, as with 403.
        """

        def holds(_: Self) -> bool:
            found = self._current(condition)
            if found is not None and found.status == status:
                return True
            self._give_up(condition, status, give_up_on)
            return False

        return self._follow(holds, f"{condition} is not {status}", condition, timeout)

    def wait_until(self, holds: Callable[[Self], bool], *, timeout: float = WAIT_SECONDS) -> Self:
        """Wait until `holds` returns True for the object; it is called on each change. Returns the object.

        Otherwise like `wait`, but it never gives up by itself.
        """
        return self._follow(holds, "not as wanted", READY, timeout)

    def _follow(self, holds: Callable[[Self], bool], wanting: str, about: str, timeout: float) -> Self:
        uid = self.obj["metadata"].get("uid")
        following = Following(self.api, self.version, self.endpoint, self.name, Deadline(timeout))
        with closing(following.states()) as states:
            for state in states:
                if state.object is not None:
                    if uid not in (None, state.object["metadata"]["uid"]):
                        raise Deleted(f"{self._called} was replaced by another object of the same name.")
                    uid = state.object["metadata"]["uid"]
                    self.set_obj(state.object)
                    if holds(self):
                        return self
                if state.gone and uid is not None:
                    raise Deleted(f"{self._called} was deleted.", self.condition(about))
        known = following.listed or uid is not None
        seen = self._seen(about) if known else "It has not been read."
        text = f"{self._called}: after {timeout:g} s {wanting}. {seen}"
        if following.trouble:
            text += f" The API server cannot be reached: {following.trouble}."
        raise TimedOut(text, self.condition(about))

    @property
    def _called(self) -> str:
        return f"{self.kind} {self.name}"

    def _ended(self) -> bool:
        """Whether nothing will happen any more by itself."""
        return False

    def _current(self, type_: str) -> Condition | None:
        """A condition, unless it was observed for an older spec."""
        found = self.condition(type_)
        least = self.obj["metadata"].get("generation", 0)
        return found if found is not None and found.observed_generation >= least else None

    def _stalled(self) -> Condition | None:
        """The condition that says that someone must act first, if there is one."""
        found = self._current(STALLED)
        return found if found is not None and found.status == "True" else None

    def _give_up(
        self,
        wanted: str,
        status: ConditionStatus,
        reasons: Collection[str] | None,
    ) -> None:
        """Raise ConditionFailed if waiting any longer is pointless."""
        found = self._current(wanted)
        stalled = self._stalled()
        if stalled is not None and reasons is None:
            raise ConditionFailed(f"{self._called} is stalled: {_reason_of(stalled)}", stalled)
        for each in (found, self._current(READY)):
            if each is not None and each.status == "False" and each.reason in (reasons or ()):
                raise ConditionFailed(f"{self._called}: {each.type} is False: {_reason_of(each)}", each)
        if self._ended():
            text = f"{self._called} has ended, and {wanted} is not {status}. {self._seen(wanted)}"
            raise ConditionFailed(text, found)

    def _seen(self, wanted: str) -> str:
        found = self.condition(wanted)
        if found is not None:
            age = " of an older spec" if self._current(wanted) is None else ""
            return f"It is {found.status}{age}: {_reason_of(found)}"
        if "uid" not in self.obj["metadata"]:
            return "There is no such object."
        return f"It has the conditions {', '.join(each.type for each in self.conditions) or '(none)'}."


def _reason_of(condition: Condition) -> str:
    return f"{condition.reason}: {condition.message}"
