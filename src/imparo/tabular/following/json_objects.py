"""Lines of JSON that name their own columns, some of which may come later."""

import json
from pathlib import Path
from typing import Any

from imparo.data import Frame
from imparo.data.readers import LineFormat, RowError
from imparo.data.readers.json_values import schema_of


class JsonObjects(LineFormat):
    """One object a line; each chunk has the columns that its lines name.

    A reader of whole files looks at them first. Of a pipe nobody knows what will come, so
    columns that are absent are filled in, and kinds are settled, by who knows the learner.

    Examples
    --------
    >>> from imparo.tabular.following.json_objects import JsonObjects
    >>> JsonObjects().parse(b'{"x": 1, "city": "Rome"}', "-", 1)
    Frame of 1 rows: x, city
    """

    def __init__(self) -> None:
        self.names, self.kinds = [], {}

    def parse(self, chunk: bytes, file: str | Path, line: int, offset: int = 0) -> Frame:
        """Return the rows of some whole lines."""
        numbered = enumerate(chunk.split(b"\n"), start=line)
        found = [
            (number, _object(text, file, number)) for number, text in numbered if text.strip()
        ]
        objects = [row for _, row in found]
        schema = schema_of(objects, (), file)
        columns, wrong = schema.read(objects, schema.names)
        if wrong:
            place = min(wrong)
            what, remedy = wrong[place]
            raise RowError(
                f"{file}, line {found[place][0]:,}: {what}; {remedy}, or skip bad rows"
            )
        return Frame(columns, len(objects))


def _object(text: bytes, file: str | Path, line: int) -> dict[str, Any]:
    where = f"{file}, line {line:,}"
    try:
        row = json.loads(text)
    except (ValueError, RecursionError) as error:
        reason = getattr(error, "msg", "it cannot be decoded")
        raise RowError(
            f"{where}: wrong JSON, {reason[:1].lower()}{reason[1:]}; write one object a line, "
            "or skip bad rows"
        ) from None
    if not isinstance(row, dict):
        raise RowError(
            f'{where}: no object; write lines such as {{"x": 1, "y": 2}}, or skip bad rows'
        )
    return row
