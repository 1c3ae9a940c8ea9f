"""Errors for calls in the words of other libraries, and for mistyped names.

They name the right call. `explaining` makes a class raise them. Rule: a correct call is not changed. A class
gets no further public names.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Collection, Mapping
from functools import wraps
from types import FunctionType
from typing import Any, NoReturn, TypeVar

from lakelog.catalog.foreign_words import ATTRIBUTES, KEYWORDS, ON_METHODS, POSITIONAL
from lakelog.catalog.nearest import nearest
from lakelog.log.errors import InvalidInput

C = TypeVar("C", bound=type)


class WrongCall(InvalidInput, TypeError):
    """A method does not take the given arguments. It is a TypeError too."""


def explaining(cls: C) -> C:
    """Let the methods of a class, and missing attributes, name the right words."""
    for name, member in list(vars(cls).items()):
        if not name.startswith("_") and isinstance(member, FunctionType):
            setattr(cls, name, _explained(member))
    if "__getattr__" not in vars(cls):
        cls.__getattr__ = _missing  # type: ignore[attr-defined]
    return cls


def _explained(method: FunctionType) -> Callable[..., Any]:
    parameters = inspect.signature(method).parameters
    words = {
        word: advice
        for word, advice in KEYWORDS.get(method.__name__, {}).items()
        if _names_parameter(advice, parameters)
    }
    takes_all = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values())
    option_words = words if takes_all else {}

    @wraps(method)
    def with_advice(self: Any, /, *args: Any, **keywords: Any) -> Any:
        if option_words and not option_words.keys().isdisjoint(keywords):
            raise WrongCall(_wrong_keyword(method, keywords, words))
        try:
            return method(self, *args, **keywords)
        except TypeError as error:
            # An error of the call itself has no frame below this frame.
            if error.__traceback__ is None or error.__traceback__.tb_next is not None:
                raise
            raise WrongCall(_wrong_call(method, keywords, words, error)) from None

    for name, advice in ON_METHODS.get(method.__name__, {}).items():
        setattr(with_advice, name, _refusing(f"{method.__name__} is a method: {advice}"))
    return with_advice


def _names_parameter(advice: str, parameters: Collection[str]) -> bool:
    """Return whether an advice fits a method. Methods of the same name, such as `history`, differ by class."""
    keyword = re.match(r"write (\w+)=", advice)
    return keyword is None or keyword[1] in parameters


def _refusing(message: str) -> Callable[..., NoReturn]:
    def refuse(*_args: Any, **_given: Any) -> NoReturn:
        raise WrongCall(message)

    return refuse


def _wrong_call(
    method: FunctionType, keywords: Mapping[str, Any], words: Mapping[str, str], error: TypeError
) -> str:
    if not keywords.keys() <= inspect.signature(method).parameters.keys():
        return _wrong_keyword(method, keywords, words)
    text = re.sub(r"^\S*\.(\w+\(\))", r"\1", str(error))
    if "positional argument" in text and "missing" not in text:
        advice = POSITIONAL.get(method.__name__, "")
        if not advice or not _names_parameter(advice, inspect.signature(method).parameters):
            advice = f"it is called as {_form(method)}"
        return f"{method.__name__}(…) takes fewer arguments without a name: {advice}"
    return f"{text}: it is called as {_form(method)}"


def _wrong_keyword(method: FunctionType, keywords: Mapping[str, Any], words: Mapping[str, str]) -> str:
    parameters = [name for name in inspect.signature(method).parameters if name != "self"]
    keyword = next(name for name in keywords if name in words or name not in parameters)
    if keyword in words:
        advice = words[keyword]
    elif like := nearest(keyword, parameters):
        advice = f"did you mean {like[0]}=?"
    else:
        advice = f"it is called as {_form(method)}"
    return f"{method.__name__}(…) takes no {keyword}=: {advice}"


def _form(method: FunctionType) -> str:
    """Return a method's call without types and defaults."""
    texts = []
    for name, parameter in list(inspect.signature(method).parameters.items())[1:]:
        is_optional = parameter.default is not parameter.empty or parameter.kind is parameter.KEYWORD_ONLY
        if name not in ("token", "progress") and parameter.kind is not parameter.VAR_KEYWORD:
            texts.append(f"{name}=…" if is_optional else name)
    return f"{method.__name__}({', '.join(texts)})"


def _missing(self: Any, name: str) -> NoReturn:
    """Raise the error for an attribute that an object does not have."""
    cls = type(self)
    if hasattr(cls, name):
        # A property has failed by an AttributeError, which Python has dropped on its way to here.
        object.__getattribute__(self, name)
    if name.startswith("_"):
        raise AttributeError(f"{cls.__name__!r} object has no attribute {name!r}")
    raise AttributeError(f"{cls.__name__} has no {name}{_advice(cls, name)}")


def _advice(cls: type, name: str) -> str:
    for base in cls.__mro__:
        if name in (words := ATTRIBUTES.get(base.__name__, {})):
            return f": {words[name]}"
    snake_name = re.sub(r"(?<=[a-z])([A-Z])", lambda letter: f"_{letter[1].lower()}", name)
    if like := nearest(
        snake_name, (method_name for method_name in dir(cls) if not method_name.startswith("_"))
    ):
        return f": did you mean {' or '.join(like)}?"
    return ""
