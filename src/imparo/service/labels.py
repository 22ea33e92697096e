"""Labels as they are sent: which are taken, and what is said of the others."""

from typing import Annotated, Any

from pydantic import (
    Field,
    PlainValidator,
    StrictBool,
    StrictInt,
    StrictStr,
    WithJsonSchema,
)

from imparo.service.errors import Refused
from imparo.service.settings import Limits

_INTEGERS = 2**53  # up to which JSON's readers agree
#: A class of things: text, a whole number, or true and false.
Label = StrictBool | Annotated[StrictInt, Field(ge=-_INTEGERS, le=_INTEGERS)] | StrictStr


def labels_of(sent: Any) -> Any:
    """Return labels as they came, one or a list of them, if each of them is one.

    The first that is none ends it: to tell of a million others would take a gigabyte.

    Raises
    ------
    ValueError
        If it is anything else.

    Examples
    --------
    >>> from imparo.service.labels import labels_of
    >>> labels_of(["mug", 7, True])
    ['mug', 7, True]
    """
    if sent is None:
        return None
    if sent == []:
        raise ValueError("a list of labels is empty; send one for each row")
    for label in sent if isinstance(sent, list) else [sent]:
        if not isinstance(label, str | int):  # bool is a kind of int
            raise ValueError("a label must be text, a whole number, true or false")
        if not isinstance(label, str) and abs(label) > _INTEGERS:
            raise ValueError("a whole number that is a label must be within ±2^53")
    return sent


_LABEL = {
    "anyOf": [
        {"type": "boolean"},
        {"type": "integer", "minimum": -_INTEGERS, "maximum": _INTEGERS},
        {"type": "string"},
    ]
}
#: One label, or one for each row.
Labels = Annotated[
    Any,
    PlainValidator(labels_of),
    WithJsonSchema(
        {"anyOf": [{"type": "array", "items": _LABEL, "minItems": 1}, _LABEL, {"type": "null"}]}
    ),
]


def check_label(label: Label, limits: Limits) -> None:
    """Raise unless a label can be told and kept."""
    if not isinstance(label, str):
        return
    if not label.strip() or len(label) > limits.label_length:
        raise Refused(
            f"a label must have 1 to {limits.label_length} characters, and not only spaces"
        )
    if not label.isprintable():
        raise Refused(f"the label {label!r:.80} holds characters that cannot be shown")
