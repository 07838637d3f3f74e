"""The format of log records: each on one line, whatever names and messages contain."""

import copy
import logging
import os
from typing import Final

from crdkeeper.core.text import visible

LOG_FORMATS: Final = ("text", "json")
"""Of --log-format."""
PROCESS_FORMAT: Final = "%(asctime)s %(levelname)s %(name)s: %(message)s"
"""Of the records of a process without Kopf."""
_PIPE_BYTES: Final = 4096
"""Written to a pipe at once, no other process' bytes come between them (PIPE_BUF)."""
_STDERR: Final = 2
_INDENT = "    "


class OneLine(logging.Formatter):
    """Escapes a record before another formatter, of text or JSON, writes it.

    A traceback keeps its own lines; they are indented, so they cannot look like records.
    """

    def __init__(self, inner: logging.Formatter) -> None:
        super().__init__()
        self._inner = inner

    def format(self, record: logging.LogRecord) -> str:
        """Format the record as text."""
        record = copy.copy(record)
        record.msg, record.args = visible(record.getMessage()), None
        if record.exc_info and not record.exc_text:
            record.exc_text = self.formatException(record.exc_info)
        record.exc_text = _indented(record.exc_text)
        record.stack_info = _indented(record.stack_info)
        about = getattr(record, "k8s_ref", None)  # Kopf shows it, too.
        if isinstance(about, dict):
            record.k8s_ref = {key: visible(str(each or "")) for key, each in about.items()}
        return self._inner.format(record)


class WholeLines(logging.Handler):
    """Writes each line to standard error by one call, so that lines of several processes are not mixed."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write the record."""
        try:
            for line in self.format(record).split("\n"):
                os.write(_STDERR, line.encode(errors="replace")[: _PIPE_BYTES - 1] + b"\n")
        except Exception:
            self.handleError(record)


def _indented(text: str | None) -> str | None:
    return text and "\n".join(f"{_INDENT}{visible(each)}" for each in text.split("\n"))


def one_line_logs() -> None:
    """Escape all log records: for all existing handlers, and for those without a handler."""
    for handler in (*logging.getLogger().handlers, logging.lastResort):
        if handler is not None and not isinstance(handler.formatter, OneLine):
            handler.setFormatter(OneLine(handler.formatter or logging.Formatter()))


def child_logs(name: str) -> None:
    """Have this process' records show that name, each line as a whole."""
    handler = WholeLines()
    handler.setFormatter(
        OneLine(logging.Formatter(PROCESS_FORMAT.replace("%(levelname)s", f"%(levelname)s [{name}]")))
    )
    logging.getLogger().handlers[:] = [handler]


def replica_logs(log_format: str, *, verbose: bool) -> None:
    """Set up the logs of a process that runs Kopf: one of LOG_FORMATS; `verbose`: also what Kopf does."""
    # Imported only here: not every process runs Kopf.
    import kopf

    formats = {"text": kopf.LogFormat.FULL, "json": kopf.LogFormat.JSON}
    kopf.configure(verbose=verbose, log_format=formats[log_format])
    if not verbose:
        # Kopf logs a line for each event of each object.
        logging.getLogger("kopf.objects").setLevel(logging.WARNING)
    one_line_logs()
