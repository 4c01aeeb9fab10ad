# SPDX-License-Identifier: GPL-2.0-or-later
"""JSON read strictly: what is missing, unknown, of another type or out of range is refused; the message says where."""
import ipaddress
import json
import re

from .errors import TrialError

#: Names of classes and users: they go into URLs and file names.
WORD = re.compile(r'[A-Za-z0-9][A-Za-z0-9_.-]{0,62}')

#: Names of servers: they go into URLs, certificates and configuration files.
_LABEL = '[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?'
HOST = re.compile(fr'(?=.{{1,253}}$){_LABEL}(\.{_LABEL})*')
#: Whole numbers up to here are exact in JSON as most programs read it.
MOST = 2 ** 53
#: Not None: JSON has null.
_MISSING = object()


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
    if not isinstance(content, dict):
        raise SpecError(f'{path}: an object in braces is needed, found {type(content).__name__}')
    return content


class Value:
    """A JSON value with the words for where it stands; what is taken from it is checked, what is left is refused."""

    def __init__(self, value, where, separator='.'):
        """where: how messages begin; separator: what stands there between it and a key."""
        self.where, self._value, self._left, self._separator = where, value, None, separator
        if isinstance(value, dict):
            self._left = dict(value)

    def refuse(self, key, value, allowed):
        """Raises SpecError for the value of `key` (or for this value itself, with an empty key)."""
        shown = json.dumps(value)
        raise SpecError(f'{self._at(key)}: {shown[:80]} is not {allowed}')

    def _at(self, key):
        return f'{self.where}{self._separator}{key}' if key else self.where

    def object(self):
        """This value, which must be a JSON object."""
        if self._left is None:
            self.refuse('', self._value, 'an object {...}')
        return self

    def take(self, key, default=_MISSING):
        """The value of `key`, or with an empty key this value."""
        if not key:
            return self._value
        self.object()
        if key not in self._left:
            if default is _MISSING:
                raise SpecError(f'{self._at(key)}: missing')
            return default
        return self._left.pop(key)

    def done(self):
        """Refuses what nobody took."""
        for key in self._left:
            raise SpecError(f'{self._at(key)}: no such key')

    def text(self, key='', default=_MISSING):
        """A text."""
        value = self.take(key, default)
        if not isinstance(value, str):
            self.refuse(key, value, 'a text')
        return value

    def word(self, key=''):
        """A name, see WORD."""
        value = self.text(key)
        if not WORD.fullmatch(value):
            self.refuse(key, value, 'a name of letters, digits, "_", "." and "-" (at most 63)')
        return value

    def host(self, key):
        """A host name, see HOST."""
        value = self.text(key)
        if not HOST.fullmatch(value):
            self.refuse(key, value, 'a host name')
        return value

    def address(self):
        """This value, an IP address, in its usual spelling."""
        try:
            return str(ipaddress.ip_address(self.text()))
        except ValueError:
            self.refuse('', self._value, 'an IPv4 or IPv6 address')

    def number(self, key, *, low, high=MOST, default=_MISSING):
        """A number from `low` to `high`, as float."""
        value = self.take(key, default)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not low <= value <= high:
            most = '' if high == MOST else f' and at most {high:g}'
            self.refuse(key, value, f'a number of at least {low:g}{most}')
        return float(value)

    def whole(self, key, *, low, high=MOST, default=_MISSING):
        """A number without a fraction, as int."""
        value = self.number(key, low=low, high=high, default=default)
        if value != int(value):
            self.refuse(key, value, 'a whole number')
        return int(value)

    def items(self, key, read, *, most=100, default=_MISSING):
        """A list of at least one item, each read by `read(Value)`; a tuple."""
        value = self.take(key, default)
        if value is default:
            return value
        if not isinstance(value, list) or not 1 <= len(value) <= most:
            self.refuse(key, value, f'a list of 1 to {most}')
        return tuple(read(Value(item, f'{self._at(key)}[{number}]')) for number, item in enumerate(value))

    def table(self, key, read):
        """An object with at least one entry, each value read by `read(Value)`; a dict."""
        value = self.take(key)
        if not isinstance(value, dict) or not value:
            self.refuse(key, value, 'an object with at least one entry')
        return {name: read(Value(item, f'{self._at(key)}.{name}')) for name, item in value.items()}
