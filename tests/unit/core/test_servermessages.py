"""The API server's messages, without values of users' objects."""

import pytest

from crdkeeper.apiserver.golang.text import json_text, quote
from crdkeeper.cluster.transport.client import ApiError
from crdkeeper.core.migration.evidence import ObjectRef, refusal
from crdkeeper.core.servermessages import message_of, of_a_secret, without_values

INVALID = 'Widget.example.com "w1" is invalid: '
DENIED = 'admission webhook "policy.example.com" denied the request: '


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        (
            'spec.port: Invalid value: "hunter2": must be a port',
            "spec.port: Invalid value: (not shown): must be a port",
        ),
        (
            "spec.port: Invalid value: 70000: must be a port",
            "spec.port: Invalid value: (not shown): must be a port",
        ),
        ("spec.port: Invalid value: -1.5e+10: too small", "spec.port: Invalid value: (not shown): too small"),
        ("spec.on: Invalid value: true", "spec.on: Invalid value: (not shown)"),
        (
            '[a: Invalid value: {"x":"}hunter2"}: no, b: Duplicate value: ["hunter2",{"y":"\\"]"}]]',
            "[a: Invalid value: (not shown): no, b: Duplicate value: (not shown)]",
        ),
        (
            'spec.size: Unsupported value: "hunter2": supported values: "L", "S"',
            'spec.size: Unsupported value: (not shown): supported values: "L", "S"',
        ),
        (
            'spec.at: Invalid value: "x": spec.at in body must be of type date-time: "hunter2"',
            "spec.at: Invalid value: (not shown): spec.at in body must be of type date-time: (not shown)",
        ),
        ('spec.ref: Not found: "hunter2"', "spec.ref: Not found: (not shown)"),
        # In place of a value of the wrong type there is its type.
        (
            'spec.port: Invalid value: "string": spec.port in body must be of type integer: "string"',
            'spec.port: Invalid value: "string": spec.port in body must be of type integer: "string"',
        ),
        # If the end is unknown, everything is removed.
        ('spec.port: Invalid value: "hunter2', "spec.port: Invalid value: (not shown)"),
        ('spec.port: Invalid value: {"a": "hunter2', "spec.port: Invalid value: (not shown)"),
        ("spec.x: Invalid value: map[a:hunter2]: no", "spec.x: Invalid value: (not shown)"),
        # Rules in CEL show no value.
        ("spec.x: Invalid value: mysql is: over", "spec.x: Invalid value: mysql is: over"),
        ("spec.x: Required value: name it", "spec.x: Required value: name it"),
        ("", ""),
    ],
)
def test_values_go_and_all_else_stays(message: str, shown: str) -> None:
    assert without_values(INVALID + message) == INVALID + shown


@pytest.mark.parametrize(
    "value",
    ['hunter2"', "hunter2\\", "\nhunter2: Invalid value: ", "hunter2 Invalid value: 1", "}]hunter2[{"],
)
def test_no_value_breaks_out_of_its_quotes(value: str) -> None:
    for shown in (quote(value), json_text({"a": [value]})):
        message = f"spec.x: Invalid value: {shown}: must be something else"
        assert without_values(message) == "spec.x: Invalid value: (not shown): must be something else"


def test_a_long_message_is_cut_and_read_in_linear_time() -> None:
    assert len(without_values("[" * 2_000_000)) < 5000
    for unit in (
        'Invalid value: {"',
        'Invalid value: "\\',
        "Invalid value: [[",
        'denied the request: "',
        "Not found: ",
    ):
        assert len(of_a_secret(unit * 20_000)) < 5000


def test_of_a_secret_the_words_of_others_go_too() -> None:
    said = f"{DENIED}the password hunter2 is too short"
    assert of_a_secret(said) == f"{DENIED}(not shown)"
    policy = (
        "secrets \"a\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: hunter2"
    )
    assert of_a_secret(policy) == policy.replace("hunter2", "(not shown)")
    answer = (
        'failed calling webhook "w": failed to call webhook: an error on the server ("hunter2") has prevented'
    )
    assert of_a_secret(answer) == answer.replace('"hunter2"', "(not shown)")
    stays = (
        'Internal error occurred: unable to transform key "/registry/secrets/ns/a": no matching prefix found'
    )
    assert of_a_secret(stays) == stays


def test_an_error_of_the_client_shows_no_value_and_keeps_the_answer() -> None:
    body = {"reason": "Invalid", "message": 'a: Invalid value: "hunter2": no'}
    error = ApiError(422, body)
    assert str(error) == "422 Invalid: a: Invalid value: (not shown): no"
    assert error.body == body
    assert message_of(None, "nothing") == message_of({}, "nothing") == "nothing"


def test_a_refused_secret_shows_none_of_it() -> None:
    ref = ObjectRef("ns", "secret", "1")
    body = {"message": f"{DENIED}hunter2", "reason": "Forbidden"}
    found = refusal(ref, 403, body, secret=True)
    assert (found.denied_by, found.message) == ("webhook policy.example.com", f"{DENIED}(not shown)")
    assert refusal(ref, 403, body).message == f"{DENIED}hunter2"
