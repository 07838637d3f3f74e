"""How long a path can become in print: what names it has is up to others."""

from crdkeeper.apiserver.schema.fieldpath import Path, root


def test_a_path_is_printed_as_it_is() -> None:
    path = root("spec").child("versions").index(0).child("schema").child("properties").key("a.b")
    assert str(path) == "spec.versions[0].schema.properties[a.b]"


def test_a_path_is_named_as_in_the_file_for_who_sees_only_that() -> None:
    path = root("spec").child("validation", "versions", 0, "schema").child("properties").key("a.b").index(3)
    assert str(path) == "spec.validation.properties[a.b][3]"
    assert str(path.in_file()) == "spec.versions[0].schema.properties[a.b][3]"
    assert path.in_file().steps == path.steps
    assert str(Path("<nil>", ()).in_file()) == "<nil>"


def test_of_a_path_of_absurd_length_the_beginning_and_the_end_are_printed() -> None:
    path = root("spec")
    for _ in range(100):
        path = path.child("properties").key("n" * 100_000)
    text = str(path.child("type"))
    assert len(text) < 5_000
    assert text.startswith("spec.properties[nnn")
    assert text.endswith(".type")
    assert len(path.steps) == 201
    assert str(path.in_file()) == str(path)
