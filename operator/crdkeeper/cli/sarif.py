"""Findings in SARIF 2.1.0, which code hosts show next to the lines of a change."""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from crdkeeper import __version__
from crdkeeper.apiserver.schema.rules import Rule
from crdkeeper.cli.input.files import Failed
from crdkeeper.core.documents.yamldocument import Position
from crdkeeper.core.lint.convention import Convention
from crdkeeper.core.lint.severity import Severity

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
MOST_FAILED = 1_000
_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}


def document(
    rules: Iterable[Rule],
    results: Sequence[dict[str, Any]],
    failed: Iterable[Failed],
    *,
    complete: bool = True,
    notes: Iterable[str] = (),
    cut: str = "",
    documentation: str,
) -> dict[str, Any]:
    """A whole log. `rules` are those that results name, `failed` is what could not be read.

    `notes` describe the effect of configurations, and `cut` what is missing from too many `results`. At most
    MOST_FAILED of `failed` are listed. `documentation` is the page with a section for each rule.
    """
    by_id = {each.id: each for each in rules}
    notifications = [
        {
            "level": "error",
            "message": {"text": each.message},
            "locations": [location(each.file, each.position)],
        }
        for each in failed
    ]
    successful = complete and not notifications
    if len(notifications) > MOST_FAILED:
        more = f"{len(notifications) - MOST_FAILED:,} more files could not be read"
        notifications[MOST_FAILED:] = [{"level": "error", "message": {"text": more}}]
    if cut:
        notifications.append({"level": "warning", "message": {"text": cut}})
    configured = [{"level": "note", "message": {"text": each}} for each in notes]
    run = {
        "tool": {
            "driver": {
                "name": "crdkeeper",
                "version": __version__,
                "rules": [_rule(by_id[id], documentation) for id in sorted(by_id)],
            }
        },
        "results": results,
        "invocations": [
            {
                "executionSuccessful": successful,
                "toolExecutionNotifications": notifications,
                **({"toolConfigurationNotifications": configured} if configured else {}),
            }
        ],
    }
    log = {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}
    return log


def _rule(rule: Rule, documentation: str) -> dict[str, Any]:
    level = _LEVELS[rule.severity] if isinstance(rule, Convention) else "error"
    return {
        "id": rule.id,
        "shortDescription": {"text": rule.why},
        "help": {
            "text": f"{rule.remedy} See {documentation}#{rule.id}.",
            "markdown": f"{rule.why}\n\n**What to do:** {rule.remedy}\n\nSee `{documentation}#{rule.id}`.",
        },
        "defaultConfiguration": {"level": level},
    }


def location(file: str, position: Position) -> dict[str, Any]:
    """A place in a file."""
    return {
        "physicalLocation": {
            "artifactLocation": {"uri": quote(os.fsencode(Path(file).as_posix()))},
            "region": {"startLine": position.line, "startColumn": position.column},
        }
    }
