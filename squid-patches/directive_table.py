# SPDX-License-Identifier: GPL-2.0-or-later
"""Reads directives.toml, the one table of our directives in squid.conf, which says itself what its keys mean."""
import dataclasses
import pathlib
import re
import tomllib

TABLE = pathlib.Path(__file__).with_name('directives.toml')
EXPERIMENTAL = 'For research; any version may change these, or their defaults:'


class Mistake(Exception):
    """One in the table. Says where, what was found, and what is allowed."""


def listed(words, conjunction):
    words = [*words]
    return f' {conjunction} '.join((', '.join(words[:-1]), words[-1])) if len(words) > 1 else ''.join(words)


def identifier(name):
    """packet_overhead is PacketOverhead in C++."""
    return ''.join(part.capitalize() for part in name.split('_'))


@dataclasses.dataclass(frozen=True)
class Kind:
    """What a value may be; the fields are those of [kind.NAME]."""
    name: str
    placeholder: str = ''
    called: str = 'a number'
    form: str = 'Number'
    units: dict = dataclasses.field(default_factory=dict)
    per: tuple = ()

    def number(self, text):
        """A value as an administrator writes it, in the unit of RequestConfig."""
        if self.form == 'Word':
            if text not in self.units:
                raise Mistake(f'{text} is no {self.name}; give {listed(self.units, "or")}')
            return self.units[text]
        amount, _, period = text.partition('/')
        found = re.fullmatch(r'([0-9.]+) ?(\S*)', amount)
        if not found or found[2] not in (self.units or {'': 1}) or period not in (self.per or ('',)):
            raise Mistake(f'{text} is no {self.name}; give a number{" and " * bool(self.units)}{listed(self.units, "or")}')
        number = float(found[1])
        return number / 100 if self.form == 'Percent' else number * self.units.get(found[2], 1)


@dataclasses.dataclass(frozen=True)
class Option:
    """NAME=VALUE, a word that stands alone, or (without a name) the only value of a directive."""
    kind: Kind
    name: str = ''
    range: tuple = ()
    default: str = ''
    example: str = ''
    required: bool = False
    instead: str = ''
    doc: str = ''

    def __post_init__(self):
        for text in (self.default, self.example):
            if text and self.range and not self.limit(0) <= self.kind.number(text) <= self.limit(1):
                raise Mistake(f'{text} is not within {" to ".join(self.range)}')

    @property
    def limits(self):
        return [text.partition('/')[0] for text in self.range]

    @property
    def periods(self):
        return listed([f'/{period}' for period in self.kind.per], 'or')

    def limit(self, which):
        return self.kind.number(self.range[which]) if self.range else 0.0

    @property
    def shown(self):
        """A value for messages and tests; empty for a word that stands alone."""
        return self.example or self.default

    @property
    def allowed(self):
        """The values that are allowed, as messages have it."""
        if not self.shown:
            return ''
        if self.kind.form == 'Word':
            return listed(self.kind.units, 'or')
        text = f'{self.instead} or {self.kind.called}' if self.instead else self.kind.called
        if len(self.kind.units) > 1:
            text += f' with the unit {listed(self.kind.units, "or")}'
        if self.range:
            text += f' from {" to ".join(self.limits)}'
        if self.kind.per:
            text += f', and {self.periods}'
        return f'{text}, as in {self.shown}'

    def written(self, value):
        return f'{self.name}={value}' if value and self.name else value or self.name

    @property
    def head(self):
        return self.written('|'.join(word for word in (self.kind.placeholder, self.instead) if word))

    @property
    def words(self):
        """What {...} in texts stands for."""
        return {'range': ' to '.join(self.limits), 'default': self.default, 'units': listed(self.kind.units, 'or'),
                'per': listed(self.kind.per, 'or')}


@dataclasses.dataclass(frozen=True)
class Parameter:
    """One of the default plugin, which checks it itself."""
    name: str
    values: str
    default: str
    doc: str
    experimental: bool = False

    @property
    def head(self):
        return f'{self.name}={self.values}'

    @property
    def words(self):
        return {'default': self.default}


@dataclasses.dataclass(frozen=True)
class Directive:
    name: str
    type: str
    field: str
    doc: str
    default: str = ''
    absent: str = ''
    synopsis: str = ''
    before: tuple = ()
    arguments: str = ''
    notes: str = ''
    example: str = ''
    value: Option | None = None
    option: tuple = ()
    parameter: tuple = ()

    @property
    def choices(self):
        """[(sentence above them, options and parameters)] in the order of the documentation."""
        usual = [*self.option, *(each for each in self.parameter if not each.experimental)]
        return [('', usual), (EXPERIMENTAL, [each for each in self.parameter if each.experimental])]

    @property
    def usage(self):
        if self.synopsis:
            return f'{self.name} {self.synopsis}'
        words = (option.head if option.required else f'[{option.head}]' for option in self.option)
        return ' '.join((self.name, *self.before[:1], *words))

    @property
    def line_of_defaults(self):
        """The line that says what is true without it; empty if none could."""
        if self.absent:
            return ''
        if self.value:
            return f'{self.name} {self.value.default}'
        return f'{self.name} ' + (self.default or ' '.join(o.written(o.default) for o in self.option if o.default))

    def line(self, *options):
        """One with these options and those that it must have, for tests."""
        given = {word.partition('=')[0] for word in options}
        needed = [o.written(o.shown) for o in self.option if o.required and o.name not in given]
        return ' '.join((self.name, *self.before[1:], *needed, *options))


def made(cls, where, given):
    """An object of cls with what a table of TOML says."""
    known = {f.name: f for f in dataclasses.fields(cls)}
    for key in given:
        if key not in known:
            raise Mistake(f'{where}: {key} is unknown; known are {", ".join(known)}')
    for name, f in known.items():
        if f.default is f.default_factory is dataclasses.MISSING and name not in given:
            raise Mistake(f'{where}: {name} is missing')
    try:
        return cls(**{key: tuple(value) if isinstance(value, list) else value for key, value in given.items()})
    except Mistake as e:
        raise Mistake(f'{where}: {e}') from e


def read(path=TABLE):
    """(kinds by name, directives)"""
    table = tomllib.loads(path.read_text())
    kinds = {name: made(Kind, f'kind.{name}', {'name': name, **given}) for name, given in table['kind'].items()}

    def option(where, given):
        if given.get('kind') not in kinds:
            raise Mistake(f'{where}: kind {given.get("kind")} is unknown; known are {", ".join(kinds)}')
        return made(Option, where, {**given, 'kind': kinds[given['kind']]})

    directives = []
    for given in table['directive']:
        where = given.get('name', 'a directive without a name')
        given['option'] = [option(f'{where}: {o.get("name")}', o) for o in given.get('option', ())]
        given['parameter'] = [made(Parameter, f'{where}: {p.get("name")}', p) for p in given.get('parameter', ())]
        if 'value' in given:
            given['value'] = option(where, given['value'])
        directives.append(made(Directive, where, given))
    return kinds, directives
