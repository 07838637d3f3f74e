"""The rules of spec.conversion."""

import binascii

from crdkeeper.apiserver.definitions.rules.cabundle import UndecidedBundle, ca_bundle_error
from crdkeeper.apiserver.definitions.rules.internalform import Decoded
from crdkeeper.apiserver.definitions.rules.requirements import REVIEW_VERSIONS, Requirements
from crdkeeper.apiserver.dnsnames import label_errors, subdomain_errors
from crdkeeper.apiserver.golang.text import quote
from crdkeeper.apiserver.golang.urls import UrlError, parse
from crdkeeper.apiserver.schema import rules
from crdkeeper.apiserver.schema.fieldpath import Path
from crdkeeper.apiserver.schema.violation import Report

_STRATEGIES = ("None", "Webhook")


def check_conversion(spec: Decoded, path: Path, requirements: Requirements, report: Report) -> None:
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
            _check_client(client, client_at, requirements, report)
        _check_review_versions(versions, versions_at, requirements, report)
        return
    detail = "should not be set when strategy is not set to Webhook"
    if client is not None:
        report.forbidden(rules.CONVERSION, client_at, detail)
    if versions:
        report.forbidden(rules.CONVERSION, versions_at, detail)


def _check_client(client: Decoded, path: Path, requirements: Requirements, report: Report) -> None:
    url, service = client.get("url"), client.get("service")
    if (url is None) == (service is None):
        report.required(rules.CONVERSION, path, "exactly one of url or service is required")
    elif url is not None:
        _check_url(url, path.child("url"), report)
    elif service is not None:
        _check_service(service, path.child("service"), report)
    if client.get("caBundle") and requirements.ca_bundle is not False:
        _check_ca_bundle(client["caBundle"], path.child("caBundle"), requirements, report)


def _check_url(text: str, path: Path, report: Report) -> None:
    form = "; desired format: https://host[/path]"
    try:
        url = parse(text)
    except UrlError as error:
        problem = f"parse {quote(_read(text))}: {error.message}"
        report.required(rules.CONVERSION, path, f"url must be a valid URL: {problem}{form}")
        return
    if url.scheme != "https":
        detail = f"'https' is the only allowed URL scheme{form}"
        report.invalid(rules.CONVERSION, path, url.scheme, detail)
    if not url.host:
        report.invalid(rules.CONVERSION, path, "", f"host must be specified{form}")
    if url.user is not None:
        report.invalid(rules.CONVERSION, path, url.user, "user information is not permitted in the URL")
    if url.fragment:
        report.invalid(rules.CONVERSION, path, _text(url.fragment), "fragments are not permitted in the URL")
    if url.query:
        detail = "query parameters are not permitted in the URL"
        report.invalid(rules.CONVERSION, path, _text(url.query), detail)


def _read(text: str) -> str:
    """What Go was parsing when it failed: a URL without its fragment, or with it."""
    before = text.partition("#")[0]
    try:
        parse(before)
    except UrlError:
        return before
    return text


def _text(part: str) -> str:
    """A part of a URL, which is kept as bytes, as a string."""
    return part.encode("latin-1").decode("utf-8", "surrogateescape")


def _check_ca_bundle(bundle: bytes, path: Path, requirements: Requirements, report: Report) -> None:
    try:
        error = ca_bundle_error(bundle)
    except UndecidedBundle:
        report.leave(rules.CONVERSION, path, "whether the certificates can be read is not decided here")
        return
    if requirements.ca_bundle is None:
        report.leave(rules.CONVERSION, path, "a bad bundle is accepted where the old one was bad, too")
        return
    shown = binascii.b2a_base64(bundle, newline=False).decode()
    report.invalid_as_json(rules.CONVERSION, path, shown, error)


def _check_service(service: Decoded, path: Path, report: Report) -> None:
    # The server confuses the two: it reports a missing name as a missing namespace, and vice versa.
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


def _check_review_versions(
    versions: list[str], path: Path, requirements: Requirements, report: Report
) -> None:
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
    if requirements.review_version and not seen & REVIEW_VERSIONS:
        report.invalid(rules.CONVERSION, path, versions, "must include at least one of v1, v1beta1")
