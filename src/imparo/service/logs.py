"""Structured logs: one line of JSON, or of text, for each thing that happened."""

import json
import logging
import sys
import warnings
from datetime import UTC, datetime
from typing import Any

_USUAL = {*vars(logging.makeLogRecord({})), "message", "asctime", "taskName", "color_message"}


def fields_of(record: logging.LogRecord) -> dict[str, Any]:
    """Return what a record says beside its message."""
    return {key: value for key, value in vars(record).items() if key not in _USUAL}


class JsonLines(logging.Formatter):
    """Each record as one JSON object: time, level, event, and what goes with it.

    Examples
    --------
    >>> import json, logging
    >>> from imparo.service.logs import JsonLines
    >>> record = logging.makeLogRecord({"msg": "opened", "learner": "arm", "levelname": "INFO"})
    >>> line = json.loads(JsonLines().format(record))
    >>> line["event"], line["learner"]
    ('opened', 'arm')
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        moment = datetime.fromtimestamp(record.created, UTC)
        line = {
            "time": moment.isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "event": record.getMessage(),
            **fields_of(record),
        }
        if record.exc_info and record.exc_info[1] is not None:
            line["trace"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


class TextLines(logging.Formatter):
    """Each record as a line for people."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        moment = datetime.fromtimestamp(record.created)
        fields = "".join(f"  {key}={value}" for key, value in fields_of(record).items())
        line = f"{moment:%H:%M:%S} {record.levelname.lower():7} {record.getMessage()}{fields}"
        # A label or an address from outside must not break out of its line.
        line = "".join(c if c.isprintable() else repr(c)[1:-1] for c in line)
        if record.exc_info and record.exc_info[1] is not None:
            line += "\n" + self.formatException(record.exc_info)
        return line


def set_up(kind: str, level: str) -> None:
    """Send the logs of the service and of its server to standard error.

    Parameters
    ----------
    kind : {"json", "text"}
    level : {"debug", "info", "warning", "error"}
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if kind == "json" else TextLines())
    # uvicorn warns of every connection that is refused: whoever likes could fill the disk.
    for name, least in (("imparo", level), ("uvicorn", "error")):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(least.upper())
    warnings.showwarning = _shown


def _shown(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
    """Log a warning as what it says; where in the code it was said helps nobody here."""
    logging.getLogger("imparo.service").warning(str(message), extra={"kind": category.__name__})
