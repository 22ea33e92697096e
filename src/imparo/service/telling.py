"""What validation found, as one sentence for whoever sent it."""

from typing import Any

from pydantic import BaseModel

from imparo.service import schemas

# Parts of a place that are names of types, not of anything that was sent.
_TYPES = {"body", "query", "bool", "int", "str", "float", "list", "none", "function"}
_KINDS: dict[str, tuple[type[BaseModel], type[BaseModel]]] = {
    "classifier": (schemas.NewClassifier, schemas.ClassifierParameters),
    "regressor": (schemas.NewRegressor, schemas.RegressorParameters),
    "dynamics": (schemas.NewDynamics, schemas.DynamicsParameters),
}
_WITHIN: dict[str, type[BaseModel]] = {"fourier": schemas.Waves, "robot": schemas.Arm}


def told_of(errors: Any, kind: type[BaseModel] | None = None) -> str:
    """Return what validation found as one sentence.

    Parameters
    ----------
    errors : list of dict
        As pydantic tells them.
    kind : type, optional
        Of what was checked.

    Examples
    --------
    >>> from pydantic import ValidationError
    >>> from imparo.service.schemas import Forget
    >>> from imparo.service.telling import told_of
    >>> try:
    ...     Forget.model_validate({"lable": "mug"})
    ... except ValidationError as error:
    ...     print(told_of(error.errors(), Forget))
    label is missing; send it
    """
    first = errors[0]
    what, where = str(first.get("type", "")), _place(first["loc"])
    if what.startswith("union_tag"):
        return 'kind must be "classifier", "regressor" or "dynamics"'
    if what == "missing":
        how = f", as ?{where}=mug" if first["loc"][0] == "query" else ""
        return f"{where} is missing; send it{how}"
    if what == "extra_forbidden":
        known = ", ".join(_known(first["loc"], kind))
        return f"there is no {first['loc'][-1]!r:.120}" + (
            f"; known are {known}" if known else ""
        )
    if what == "string_pattern_mismatch":
        return f"{where} must have 1 to 64 letters, digits, - and _, and nothing else"
    if what in ("model_type", "model_attributes_type", "dict_type"):
        return f"{where or 'the body'} must be a JSON object"
    # Where several things may stand, there is an error for each.
    said = dict.fromkeys(_plain(error["msg"]) for error in errors
                         if _place(error["loc"]) == where)  # fmt: skip
    return f"{where or 'the message':.120}: {', or '.join(said):.300}"


def _place(loc: Any) -> str:
    parts = [str(part) for part in loc]
    if parts[:1] == ["body"] and parts[1:2] and parts[1] in _KINDS:
        parts = parts[2:]
    return ".".join(part for part in parts if part not in _TYPES and not set(part) & set("[(-"))


def _plain(said: str) -> str:
    said = said.removeprefix("Value error, ").removeprefix("Assertion failed, ")
    return said.replace("Input should be a valid", "it must be a").replace(
        "Input should be", "it must be"
    )


def _known(loc: Any, kind: type[BaseModel] | None) -> list[str]:
    """Return what may stand where something else stood."""
    parts = [str(part) for part in loc[:-1]]
    for part in reversed(parts):
        if part in _WITHIN:
            return list(_WITHIN[part].model_fields)
        if part == "parameters":
            return list(_KINDS[parts[1]][1].model_fields) if parts[1] in _KINDS else []
        if part in _KINDS:
            return list(_KINDS[part][0].model_fields)
    return [] if kind is None else list(kind.model_fields)
