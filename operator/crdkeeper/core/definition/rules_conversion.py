"""The rules of spec.conversion."""

import re

from crdkeeper.core.definition.internalform import Decoded
from crdkeeper.core.dnsnames import label_errors, subdomain_errors
from crdkeeper.core.schema import rules
from crdkeeper.core.schema.fieldpath import Path
from crdkeeper.core.schema.violation import Report

_STRATEGIES = ("None", "Webhook")


def check_conversion(spec: Decoded, path: Path, report: Report) -> None:
    """spec.conversion; without one, the strategy is None."""
    conversion = spec.get("conversion")
    if conversion is None:
        return
    at = path.child("conversion")
    strategy = conversion.get("strategy", "")
    if strategy != "None" and spec.get("preserveUnknownFields"):
        detail = "must be None if spec.preserveUnknownFields is true"
        report.invalid_as_json(rules.CONVERSION, at.child("strategy"), strategy, detail)
    if not strategy:
        report.required(rules.CONVERSION, at.child("strategy"))
    elif strategy not in _STRATEGIES:
        report.not_supported(rules.CONVERSION, at.child("strategy"), strategy, _STRATEGIES)
    webhook = conversion.get("webhook", {})
    client = webhook.get("clientConfig")
    client_at = at.child("webhookClientConfig", "webhook", "clientConfig")
    versions = webhook.get("conversionReviewVersions", [])
    versions_at = at.child("conversionReviewVersions", "webhook", "conversionReviewVersions")
    if strategy == "Webhook":
        if client is None:
            report.required(rules.CONVERSION, client_at, "required when strategy is set to Webhook")
        else:
            _check_client(client, client_at, report)
        _check_review_versions(versions, versions_at, report)
        return
    detail = "should not be set when strategy is not set to Webhook"
    if client is not None:
        report.forbidden(rules.CONVERSION, client_at, detail)
    if versions:
        report.forbidden(rules.CONVERSION, versions_at, detail)


def _check_client(client: Decoded, path: Path, report: Report) -> None:
    url, service = client.get("url"), client.get("service")
    if (url is None) == (service is None):
        report.required(rules.CONVERSION, path, "exactly one of url or service is required")
    elif url is not None:
        _check_url(url, path.child("url"), report)
    elif service is not None:
        _check_service(service, path.child("service"), report)


_URL = re.compile(
    r"(?:(?P<scheme>[a-z]+)://)?(?:(?P<user>[a-z0-9]+)@)?(?P<host>[A-Za-z0-9.-]*)(?::[0-9]{1,5})?"
    r"(?:/[A-Za-z0-9._~/-]*)?(?:\?(?P<query>[a-z0-9=&]*))?(?:#(?P<fragment>[a-z0-9]*))?",
    re.ASCII,
)


def _check_url(url: str, path: Path, report: Report) -> None:
    parts = _URL.fullmatch(url)
    if parts is None or not parts["scheme"]:
        report.leave(rules.CONVERSION, path, "whether the URL is well formed is not decided here")
        return
    form = "; desired format: https://host[/path]"
    if parts["scheme"] != "https":
        detail = f"'https' is the only allowed URL scheme{form}"
        report.invalid(rules.CONVERSION, path, parts["scheme"], detail)
    host = url.partition("://")[2].partition("@")[2] if parts["user"] else url.partition("://")[2]
    if not re.split("[/?#]", host, maxsplit=1)[0]:
        report.invalid(rules.CONVERSION, path, "", f"host must be specified{form}")
    if parts["user"]:
        report.invalid(rules.CONVERSION, path, parts["user"], "user information is not permitted in the URL")
    if parts["fragment"]:
        report.invalid(rules.CONVERSION, path, parts["fragment"], "fragments are not permitted in the URL")
    if parts["query"]:
        report.invalid(
            rules.CONVERSION, path, parts["query"], "query parameters are not permitted in the URL"
        )


def _check_service(service: Decoded, path: Path, report: Report) -> None:
    # The server has the two mixed up: a missing name is reported as a missing namespace, and vice versa.
    if not service.get("namespace"):
        report.required(rules.CONVERSION, path.child("name", "namespace"))
    if not service.get("name"):
        report.required(rules.CONVERSION, path.child("namespace", "name"))
    port = service.get("port", 443)
    if not 1 <= port <= 65535:
        detail = "port is not valid: must be between 1 and 65535, inclusive"
        report.invalid(rules.CONVERSION, path.child("port"), port, detail)
    _check_service_path(service.get("path", ""), path.child("path"), report)


def _check_service_path(url_path: str, path: Path, report: Report) -> None:
    if url_path in ("", "/"):
        return
    if url_path == "//":
        report.invalid(rules.CONVERSION, path, url_path, "segment[0] may not be empty")
        return
    if not url_path.startswith("/"):
        report.invalid(rules.CONVERSION, path, url_path, "must start with a '/'")
    for i, step in enumerate(url_path[1:].removesuffix("/").split("/")):
        if not step:
            report.invalid(rules.CONVERSION, path, url_path, f"segment[{i}] may not be empty")
            continue
        for error in subdomain_errors(step):
            report.invalid(rules.CONVERSION, path, url_path, f"segment[{i}]: {error}")


def _check_review_versions(versions: list[str], path: Path, report: Report) -> None:
    if not versions:
        report.required(rules.CONVERSION, path)
        return
    seen: set[str] = set()
    for i, each in enumerate(versions):
        if each in seen:
            report.invalid(rules.CONVERSION, path.index(i), each, "duplicate version")
            continue
        seen.add(each)
        for error in label_errors(each):
            report.invalid(rules.CONVERSION, path.index(i), each, error)
    if not seen & {"v1", "v1beta1"}:
        report.invalid(rules.CONVERSION, path, versions, "must include at least one of v1, v1beta1")
