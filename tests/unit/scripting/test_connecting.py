"""Which cluster a script talks to, as whom, and that no credentials are left behind."""

import base64
import ssl
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import requests
import yaml
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
        "contexts": [{"name": each, "context": {"cluster": each, "user": "u"}} for each in ("this", "other")],
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


def server_side(authority: Authority, issued: Issued, directory: Path) -> ssl.SSLContext:
    """The API server's side, which wants a client certificate of the same authority."""
    names = directory / "tls.crt", directory / "tls.key"
    for name, content in zip(names, (issued.certificate, issued.key), strict=True):
        name.write_bytes(content)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*names)
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(cadata=authority.pem.decode())
    return context


def ask(client: Any) -> None:
    DefinitionReport.objects(client).get_or_none(name="x")


def token(request: Request) -> str:
    return request.headers["Authorization"].removeprefix("Bearer ")


def test_the_kubeconfig_of_the_environment_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(refusal(404)) as server:
        monkeypatch.setenv("KUBECONFIG", str(kubeconfig(tmp_path / "config", server.url)))
        ask(connect())
        (request,) = server.requests
    assert token(request) == "t1"
    assert connect(context="other").url == "http://other.example.com"


@pytest.mark.parametrize("text", [None, "{", "[]", "a: 1", "current-context: this"])
def test_what_leads_nowhere_is_said(text: str | None, tmp_path: Path) -> None:
    path = tmp_path / "config"
    if text is not None:
        path.write_text(text, encoding="utf-8")
    with pytest.raises(ConnectError, match=f"^{path} does not lead to a cluster: "):
        connect(path)


def test_in_a_pod_the_token_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    authority = Authority()
    issued = authority.issue()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    names = tmp_path / "tls.crt", tmp_path / "tls.key"
    names[0].write_bytes(issued.certificate)
    names[1].write_bytes(issued.key)
    context.load_cert_chain(*names)
    (tmp_path / "ca.crt").write_bytes(authority.pem)
    (tmp_path / "namespace").write_text("default", encoding="utf-8")
    (tmp_path / "token").write_text("first\n", encoding="utf-8")
    monkeypatch.setattr(connecting, "SERVICE_ACCOUNT", tmp_path)
    monkeypatch.delenv("KUBECONFIG", raising=False)
    with serving(refusal(404), tls=context) as server:
        host, port = server.url.removeprefix("https://").split(":")
        monkeypatch.setenv("KUBERNETES_SERVICE_HOST", host)
        monkeypatch.setenv("KUBERNETES_SERVICE_PORT", port)
        client = connect()
        ask(client)
        (tmp_path / "token").write_text("second\n", encoding="utf-8")
        ask(client)
    assert [token(each) for each in server.requests] == ["first", "second"]


def test_certificates_and_keys_are_left_in_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    authority = Authority()
    mine, theirs = authority.issue(), authority.issue()
    shared = tmp_path / "tmp"
    shared.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(shared))
    with serving(answer({"metadata": {"name": "x"}}), tls=server_side(authority, theirs, tmp_path)) as server:
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
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    issued = public.issue()
    (tmp_path / "tls.crt").write_bytes(issued.certificate)
    (tmp_path / "tls.key").write_bytes(issued.key)
    context.load_cert_chain(tmp_path / "tls.crt", tmp_path / "tls.key")
    with serving(refusal(404), tls=context) as server:
        cluster = {"certificate-authority-data": encoded(ours.pem)}
        config = kubeconfig(tmp_path / "config", server.url, cluster=cluster)
        report = DefinitionReport.named("x", api=connect(config))
        with pytest.raises(ConnectError, match="certificate is not trusted"):
            report.wait(timeout=30)
        with pytest.warns(InsecureRequestWarning):
            ask(connect(kubeconfig(config, server.url, cluster={"insecure-skip-tls-verify": True})))
        assert len(server.requests) == 1
