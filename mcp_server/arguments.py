"""The arguments of a tool: the parameters of its function that have a type of `parameters.py`."""

import inspect
from collections.abc import Callable, Mapping
from typing import Annotated, Any, get_origin

from pydantic import BaseModel, ConfigDict, ValidationError, create_model
from pydantic.json_schema import GenerateJsonSchema

from ..schema.errors import UsageError

_MAX_LENGTH = 20_000
_MAX_ERRORS = 5
# Agents write a module's id as a number, too.
_CONFIG = ConfigDict(extra="forbid", coerce_numbers_to_str=True)


def json_schema(tool: Callable[..., Any]) -> dict[str, Any]:
    """The JSON schema of the arguments, without titles, which only repeat names."""
    schema = _model(tool).model_json_schema(schema_generator=_WithoutTitles)
    del schema["title"]
    return schema


def check_arguments(tool: Callable[..., Any], arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments, converted and with defaults. Raises UsageError."""
    if sum(len(str(value)) for value in arguments.values()) > _MAX_LENGTH:
        raise UsageError(f"arguments are longer than {_MAX_LENGTH} characters")
    model = _model(tool)
    try:
        return dict(model.model_validate(arguments))
    except ValidationError as error:
        reasons = [
            f"{'.'.join(map(str, reason['loc']))}: {reason['msg']}"
            for reason in error.errors(include_url=False)[:_MAX_ERRORS]
        ]
        names = f"arguments of {tool.__name__}: {', '.join(model.model_fields)}"
        raise UsageError(f"{'; '.join(reasons)} ({names})") from None


def _model(tool: Callable[..., Any]) -> type[BaseModel]:
    """The arguments as a pydantic model."""
    fields: dict[str, Any] = {}
    for name, parameter in inspect.signature(tool).parameters.items():
        if get_origin(parameter.annotation) is Annotated:
            default = ... if parameter.default is parameter.empty else parameter.default
            fields[name] = (parameter.annotation, default)
    return create_model(tool.__name__, __config__=_CONFIG, **fields)


class _WithoutTitles(GenerateJsonSchema):
    def field_title_should_be_set(self, schema: Any) -> bool:
        return False
