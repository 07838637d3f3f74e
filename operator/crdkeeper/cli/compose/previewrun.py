"""The part of `crdkeeper compose preview` that needs the cluster."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from crdkeeper.api.composition import CompositionSpec
from crdkeeper.apiserver.definitions.schemas import UnreadableDefinition
from crdkeeper.cli.compose.previewoutput import PreviewOutput
from crdkeeper.cli.output.printing import Trouble
from crdkeeper.cluster.transport.client import Client
from crdkeeper.cluster.transport.connection import Connection
from crdkeeper.controllers.composite.previewing import NotPreviewed, Preview, Rejected, prepare


@dataclass(frozen=True, slots=True)
class Asked:
    """What is to be previewed, and how it is to be printed."""

    composition: Mapping[str, Any]
    spec: CompositionSpec
    composites: tuple[str, ...]
    selector: str
    limit: int
    output: str


async def run_preview(connection: Connection, asked: Asked) -> PreviewOutput | Rejected:
    """Try the Composition, and print what it would change.

    Raises ApiError, NotPermitted and Unreachable, and Trouble if it cannot be tried.
    """
    # What the composer would log is printed as a result.
    logging.getLogger("crdkeeper.controllers.composite").setLevel(logging.ERROR)
    async with Client(connection) as client:
        try:
            trial = await prepare(client, asked.composition, asked.spec)
            if isinstance(trial, Rejected):
                return trial
            output = PreviewOutput(asked.output, trial.revision.name, new=trial.new)
            preview = Preview(client, trial)
            for each in asked.composites:
                namespace, _, name = each.rpartition("/")
                if trial.kind.namespaced and not namespace:
                    namespace = connection.namespace
                output.take(await preview.of(namespace, name))
            if not asked.composites:
                async for made in preview.of_all(asked.selector, asked.limit):
                    output.take(made)
        except NotPreviewed as error:
            raise Trouble(str(error)) from error
        except UnreadableDefinition as error:
            raise Trouble(f"a CRD cannot be read: {error}") from error
        output.end(trial.kind.kind, preview.others)
        return output
