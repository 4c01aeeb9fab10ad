# SPDX-License-Identifier: GPL-2.0-or-later
"""Dataclasses read from JSON by the types of their fields: a field that is missing, unknown or of another type is
refused with a message that names it. (Debian 12 has only pydantic 1, Debian 13 only pydantic 2; this module does
without.)"""
import dataclasses
import json
import math
import types
import typing

from .errors import TrialError

WORDS = {str: 'a text', int: 'a whole number', float: 'a number', bool: 'true or false', dict: 'an object {...}',
         tuple: 'a list'}
#: JSON types accepted for a type: numbers without a fraction are numbers, true and false are not.
FOUND = {float: (int, float), tuple: (list, tuple)}


class SpecError(TrialError):
    """A file is wrong; str() names it, the key, the value found and what is allowed."""


def read(path):
    """The object that the JSON file `path` holds. Raises SpecError."""
    try:
        with open(path, encoding='utf-8') as file:
            content = json.load(file)
    except OSError as error:
        raise SpecError(f'{path}: {error.strerror}') from None
    except ValueError as error:
        raise SpecError(f'{path}: not JSON: {error}') from None
    return _checked(dict, content, str(path))


def of(kind, value, where, unknown=False):
    """`value`, an object from JSON, as the dataclass `kind`. where: prefix of every message, such as a file name.
    unknown: whether keys that `kind` has no field for are ignored. Raises SpecError."""
    return _object(kind, value, where, ': ', unknown)


def refuse(where, value, allowed):
    """Raises SpecError: the `value` found at `where` is not `allowed`."""
    raise SpecError(f'{where}: {json.dumps(value)[:80]} is not {allowed}')


def _object(kind, value, where, between='.', unknown=False):
    hints, left = typing.get_type_hints(kind), dict(_checked(dict, value, where))
    made = {}
    for field in dataclasses.fields(kind):
        if field.name in left:
            made[field.name] = _value(hints[field.name], left.pop(field.name), f'{where}{between}{field.name}')
        elif field.default is field.default_factory is dataclasses.MISSING:
            raise SpecError(f'{where}{between}{field.name}: missing')
    if left and not unknown:
        raise SpecError(f'{where}{between}{next(iter(left))}: no such key')
    return kind(**made)


def _value(kind, value, where):
    outer, inner = typing.get_origin(kind), typing.get_args(kind)
    if outer is types.UnionType:    # X | None
        return None if value is None else _value(inner[0], value, where)
    if dataclasses.is_dataclass(kind):
        return _object(kind, value, where)
    if outer is tuple:
        return tuple(_value(inner[0], each, f'{where}[{number}]')
                     for number, each in enumerate(_checked(tuple, value, where)))
    if outer is dict:
        return {name: _value(inner[1], each, f'{where}.{name}') for name, each in _checked(dict, value, where).items()}
    return _checked(kind, value, where)


def _checked(kind, value, where):
    if type(value) not in FOUND.get(kind, (kind,)) or kind is float and not math.isfinite(value):
        refuse(where, value, WORDS[kind])
    return float(value) if kind is float else value
