"""Texts in status, Events and logs: bounded, and without users' values."""

import pytest
from pydantic import BaseModel, ConfigDict, ValidationError

from crdkeeper.api.texts import LINE_BYTES, bounded, described
from crdkeeper.api.versionconversion import ConversionFailure, VersionConversionSpec


@pytest.mark.parametrize("char", ["x", "ä", "日", "🙂", "\ud800"])
@pytest.mark.parametrize("length", [0, 1, 255, 256, 1023, 1024, 1025, 300_000])
def test_a_text_is_cut_once_and_at_a_character(char: str, length: int) -> None:
    cut = bounded(char * length, LINE_BYTES)
    assert len(cut.encode(errors="replace")) <= LINE_BYTES
    assert bounded(cut, LINE_BYTES) == cut
    if len((char * length).encode(errors="replace")) <= LINE_BYTES:
        assert cut == char * length
    else:
        assert cut.endswith("…")
        assert cut[:-1] == (char if char != "\ud800" else "?") * (len(cut) - 1)


def test_a_text_in_a_list_of_status_is_cut() -> None:
    failure = ConversionFailure(name="mine", from_version="v1", to_version="v2", message="x" * 1_000_000)
    assert len(failure.message.encode()) == LINE_BYTES


def test_what_pydantic_finds_is_told_without_values() -> None:
    spec = {"resource": {"group": "g", "resource": "r"}, "hub": ["hunter2"], "spokes": "hunter2"}
    with pytest.raises(ValidationError) as caught:
        VersionConversionSpec.model_validate(spec)
    assert (
        described(caught.value) == "hub: Input should be a valid string; spokes: Input should be a valid list"
    )


def test_many_and_long_names_of_unknown_fields_stay_short() -> None:
    class Strict(BaseModel):
        model_config = ConfigDict(extra="forbid")

    with pytest.raises(ValidationError) as caught:
        Strict.model_validate({f"{i}": 1 for i in range(20)})
    assert described(caught.value).endswith("9: Extra inputs are not permitted; and 10 more")
    with pytest.raises(ValidationError) as caught:
        Strict.model_validate({"x" * 1_000_000: 1})
    assert len(described(caught.value)) < LINE_BYTES
