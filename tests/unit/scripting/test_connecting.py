"""Which cluster a script uses, as whom, and that no credentials are left behind."""

import base64
import json
import os
import ssl
import tempfile
import time
from collections.abc import Mapping
from datetime import datetime, timedelta, tzinfo
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Self

import pytest
import requests
import yaml
from kubernetes.config import incluster_config
from urllib3.exceptions import InsecureRequestWarning

from crdkeeper.scripting import ConnectError, DefinitionReport, connect, connecting
from tests.certificates import Authority, Issued
from tests.unit.scripting.apiserver import Request, answer, refusal, serving


def kubeconfig(
    path: Path, url: str, user: Mapping[str, Any] | None = None, cluster: Mapping[str, Any] | None = None
) -> Path:
    """A kubeconfig with two contexts, of which the other one leads nowhere."""
    document = {
        "current-context": "this",
        "contexts": [
            {"name": "this", "context": {"cluster": "this", "user": "u"}},
            {"name": "other", "context": {"cluster": "other", "user": "u", "namespace": "elsewhere"}},
        ],
        "clusters": [
            {"name": "this", "cluster": {"server": url, **(cluster or {})}},
            {"name": "other", "cluster": {"server": "http://other.example.com"}},
        ],
        "users": [{"name": "u", "user": user or {"token": "t1"}}],
    }
    path.write_text(yaml.safe_dump(document), encoding="utf-8")
    return path


def encoded(content: bytes) -> str:
    return base64.b64encode(content).decode()


def server_side(issued: Issued, directory: Path, clients: Authority | None = None) -> ssl.SSLContext:
    """The API server's side; it requires client certificates if a CA for them is given."""
    names = directory / "tls.crt", directory / "tls.key"
    for name, content in zip(names, (issued.certificate, issued.key), strict=True):
        name.write_bytes(content)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*names)
    if clients is not None:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(cadata=clients.pem.decode())
    return context


def ask(client: Any) -> None:
    DefinitionReport.objects(client).get_or_none(name="x")


def token(request: Request) -> str:
    scheme, _, found = request.headers["Authorization"].partition(" ")
    assert scheme.lower() == "bearer"
    return found


def test_the_kubeconfig_of_the_environment_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(refusal(404)) as server:
        monkeypatch.setenv("KUBECONFIG", str(kubeconfig(tmp_path / "config", server.url)))
        ask(connect())
        (request,) = server.requests
    assert token(request) == "t1"
    assert connect(context="other").url == "http://other.example.com"


def test_the_first_of_several_files_says_which_cluster(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = []
    for name in ("first", "second"):
        files.append(kubeconfig(tmp_path / name, f"http://{name}.example.com"))
        files[-1].write_text(files[-1].read_text().replace("this", name), encoding="utf-8")
    monkeypatch.setenv("KUBECONFIG", os.pathsep.join(map(str, files)))
    assert connect().url == "http://first.example.com"
    assert connect(context="second").url == "http://second.example.com"


@pytest.mark.parametrize("text", [None, "{", "[]", "a: 1", "current-context: this"])
def test_what_leads_nowhere_is_said(text: str | None, tmp_path: Path) -> None:
    path = tmp_path / "config"
    if text is not None:
        path.write_text(text, encoding="utf-8")
    with pytest.raises(ConnectError, match=f"^{path} does not point to a cluster: "):
        connect(path)


def test_objects_are_looked_for_in_the_namespace_of_the_context(tmp_path: Path) -> None:
    config = kubeconfig(tmp_path / "config", "http://127.0.0.1:1")
    assert connect(config).config.namespace == "default"
    assert connect(config, context="other").config.namespace == "elsewhere"


def test_in_a_pod_the_token_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    authority = Authority()
    for name, content in (("ca.crt", authority.pem), ("namespace", b"mine"), ("token", b"first\n")):
        (tmp_path / name).write_bytes(content)
    monkeypatch.setattr(incluster_config, "SERVICE_TOKEN_FILENAME", str(tmp_path / "token"))
    monkeypatch.setattr(incluster_config, "SERVICE_CERT_FILENAME", str(tmp_path / "ca.crt"))
    monkeypatch.setattr(connecting, "NAMESPACE_FILE", tmp_path / "namespace")
    monkeypatch.delenv("KUBECONFIG", raising=False)
    with serving(refusal(404), tls=server_side(authority.issue(), tmp_path)) as server:
        host, port = server.url.removeprefix("https://").split(":")
        monkeypatch.setenv("KUBERNETES_SERVICE_HOST", host)
        monkeypatch.setenv("KUBERNETES_SERVICE_PORT", port)
        client = connect()
        ask(client)
        (tmp_path / "token").write_text("second\n", encoding="utf-8")
        time_goes_by(monkeypatch, timedelta(hours=1))
        ask(client)
    assert [token(each) for each in server.requests] == ["first", "second"]
    assert client.config.namespace == "mine"


def time_goes_by(monkeypatch: pytest.MonkeyPatch, span: timedelta) -> None:
    """Makes the reader of a pod's token believe that this much time has passed."""

    class Later(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Self:
            return super().now(tz) + span

    clock = SimpleNamespace(datetime=Later, timedelta=timedelta)
    monkeypatch.setattr(incluster_config, "datetime", clock)


def test_a_plugin_that_gives_a_token_is_run(tmp_path: Path) -> None:
    version = "client.authentication.k8s.io/v1"
    credential = {"apiVersion": version, "kind": "ExecCredential", "status": {"token": "from-plugin"}}
    plugin = {"apiVersion": version, "command": "echo", "args": [json.dumps(credential)]}
    with serving(refusal(404)) as server:
        ask(connect(kubeconfig(tmp_path / "config", server.url, {"exec": plugin})))
    assert [token(each) for each in server.requests] == ["from-plugin"]


@pytest.mark.parametrize("written", ["- a\n", "users:\n- user: {}\n"])
def test_a_malformed_kubeconfig_beside_another_is_an_error(
    written: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, other = kubeconfig(tmp_path / "config", "http://127.0.0.1:1", {"token": "t"}), tmp_path / "other"
    other.write_text(written)
    monkeypatch.setenv("KUBECONFIG", os.pathsep.join(map(str, (whole, other))))
    with pytest.raises(ConnectError, match="is malformed"):
        connect()


@pytest.mark.parametrize("first", [True, False])
def test_an_empty_kubeconfig_beside_another_is_passed_over(
    first: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "other"
    other.touch()
    with serving(refusal(404)) as server:
        whole = kubeconfig(tmp_path / "config", server.url)
        files = (other, whole) if first else (whole, other)
        monkeypatch.setenv("KUBECONFIG", os.pathsep.join(map(str, files)))
        ask(connect())
    assert [token(each) for each in server.requests] == ["t1"]


def test_the_only_kubeconfig_is_said_to_be_empty(tmp_path: Path) -> None:
    (tmp_path / "config").touch()
    with pytest.raises(ConnectError, match=r"config file is empty$"):
        connect(tmp_path / "config")


def test_nobody_is_asked_without_the_credentials_of_the_plugin(tmp_path: Path) -> None:
    """It would be as system:anonymous."""
    plugin = {"apiVersion": "client.authentication.k8s.io/v1", "command": "false"}
    with pytest.raises(ConnectError, match=r"^The exec plugin 'false' gave no credentials$"):
        connect(kubeconfig(tmp_path / "config", "http://127.0.0.1:1", {"exec": plugin}))


def test_requests_are_made_in_the_name_of_whom_the_kubeconfig_says(tmp_path: Path) -> None:
    user = {"token": "t1", "as": "jürgen", "as-groups": ["a"], "as-user-extra": {"b/c": ["d"]}}
    with serving(refusal(404)) as server:
        ask(connect(kubeconfig(tmp_path / "config", server.url, user)))
    (request,) = server.requests
    found = {name: value for name, value in request.headers.items() if "Impersonate" in name}
    assert found == {
        "Impersonate-User": "jürgen".encode().decode("latin-1"),
        "Impersonate-Group": "a",
        "Impersonate-Extra-b%2Fc": "d",
    }


@pytest.mark.parametrize(
    ("user", "words"),
    [
        ({"as": "a", "as-groups": ["b", "c"]}, "several values of as-groups"),
        ({"as": "a", "as-user-extra": {"k": ["b", "c"]}}, "several values of as-user-extra"),
        ({"as": "a", "as-user-extra": {"k": ["b"], "K": ["c"]}}, "several values of as-user-extra"),
        ({"as-uid": "1"}, "but not as: whom to impersonate"),
    ],
)
def test_nobody_is_impersonated_by_half(user: Mapping[str, Any], words: str, tmp_path: Path) -> None:
    with pytest.raises(ConnectError, match=words):
        connect(kubeconfig(tmp_path / "config", "http://127.0.0.1:1", user))


@pytest.mark.parametrize("named", [True, False], ids=["of the kubeconfig", "of the environment"])
def test_requests_go_by_the_proxy(named: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(refusal(404)) as proxy:
        cluster = {"proxy-url": proxy.url} if named else {}
        monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1" if named else proxy.url)
        monkeypatch.setenv("NO_PROXY", "10.0.0.0/8")
        ask(connect(kubeconfig(tmp_path / "config", "http://api.example.com", cluster=cluster)))
        assert len(proxy.requests) == 1
        monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
        ask(connect(kubeconfig(tmp_path / "config", proxy.url)))
        assert len(proxy.requests) == 2  # addresses of this machine are always exempt


@pytest.mark.parametrize("seconds", [60, -60])
def test_an_id_token_is_used_until_it_expires(seconds: int, tmp_path: Path) -> None:
    """The issuer is not asked for another one: the library would not verify who answers."""
    claims = encoded(json.dumps({"exp": int(time.time()) + seconds}).encode()).rstrip("=")
    details = {"client-id": "c", "client-secret": "s", "refresh-token": "r", "id-token": f"e30.{claims}.s"}
    with serving(refusal(404)) as issuer, serving(refusal(404)) as server:
        provider = {"name": "oidc", "config": {**details, "idp-issuer-url": issuer.url}}
        path = kubeconfig(tmp_path / "config", server.url, {"auth-provider": provider})
        if seconds > 0:
            ask(connect(path))
        else:
            with pytest.raises(ConnectError, match="Only kubectl renews it"):
                connect(path)
    assert [token(each) for each in server.requests] == [details["id-token"]] * (seconds > 0)
    assert issuer.requests == []


def test_certificates_and_keys_are_left_in_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    authority = Authority()
    mine, theirs = authority.issue(), authority.issue()
    shared = tmp_path / "tmp"
    shared.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(shared))
    with serving(answer({"metadata": {"name": "x"}}), tls=server_side(theirs, tmp_path, authority)) as server:
        config = kubeconfig(
            tmp_path / "config",
            server.url,
            {"client-certificate-data": encoded(mine.certificate), "client-key-data": encoded(mine.key)},
            {"certificate-authority-data": encoded(authority.pem)},
        )
        ask(connect(config))
        assert len(server.requests) == 1
    assert list(shared.iterdir()) == []


def test_only_the_clusters_own_authority_is_trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ours, public = Authority("ours"), Authority("public")
    bundle = tmp_path / "bundle.pem"
    bundle.write_bytes(public.pem)
    # Where requests would look for public authorities.
    monkeypatch.setattr(requests.adapters, "DEFAULT_CA_BUNDLE_PATH", str(bundle))
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(bundle))
    with serving(refusal(404), tls=server_side(public.issue(), tmp_path)) as server:
        cluster = {"certificate-authority-data": encoded(ours.pem)}
        config = kubeconfig(tmp_path / "config", server.url, cluster=cluster)
        report = DefinitionReport.named("x", api=connect(config))
        with pytest.raises(ConnectError, match="certificate is not trusted"):
            report.wait(timeout=30)
        with pytest.warns(InsecureRequestWarning):
            ask(connect(kubeconfig(config, server.url, cluster={"insecure-skip-tls-verify": True})))
        assert len(server.requests) == 1


def test_an_intermediate_authority_is_trusted_by_itself(tmp_path: Path) -> None:
    authority = Authority("middle", above=Authority("root"))
    with serving(refusal(404), tls=server_side(authority.issue(), tmp_path)) as server:
        cluster = {"certificate-authority-data": encoded(authority.pem)}
        ask(connect(kubeconfig(tmp_path / "config", server.url, cluster=cluster)))
        assert len(server.requests) == 1


def test_the_certificate_is_for_the_server_name(tmp_path: Path) -> None:
    authority = Authority()
    issued = authority.issue(["kubernetes.example.com"])
    with serving(refusal(404), tls=server_side(issued, tmp_path)) as server:
        cluster = {"certificate-authority-data": encoded(authority.pem)}
        config = kubeconfig(tmp_path / "config", server.url, cluster=cluster)
        with pytest.raises(requests.exceptions.SSLError, match=r"mismatch|doesn't match"):
            ask(connect(config))
        cluster |= {"tls-server-name": "kubernetes.example.com"}
        ask(connect(kubeconfig(config, server.url, cluster=cluster)))
        assert len(server.requests) == 1
