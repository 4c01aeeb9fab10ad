# SPDX-License-Identifier: GPL-2.0-or-later
"""Messages of `squid -k parse` for single lines of squid.conf, and the promises of the table of directives.

The possible errors of an option are generated from squid-patches/directives.toml, like the parser itself, so that every
addition is tested. The wording of messages, for each form of value, is checked literally in a few files:
squid-patches/files/test-suite/squidconf.
"""
import re
import subprocess
import sys

import pytest

from background import PATIENCE
from fieldtrial.base.paths import ROOT
from installation import SQUID

sys.path.append(str(ROOT / 'squid-patches'))
from directive_table import TABLE, Mistake, listed, read  # noqa: E402 (needs the path above)

_, DIRECTIVES = read()
CLASSES = ('msfrs_class gold weight=4', 'msfrs_class bronze weight=1 default')
ON = ('msfrs on', 'msfrs_link rate=20Mbit', *CLASSES)
CLASS_NAMES = "1 to 32 letters, digits, '-', '_' or '.'"
USERS = 'src, src6/NN with NN from 1 to 128 (as in src6/64), login or mac'
QUOTAS = '/var/spool/squid/msfrs-quota'
SOCKETS = 'an absolute path of at most 107 characters, as in /run/msfrs/excess.sock'


def beyond(option):
    """Values that the option does not accept: just outside its range, of a wrong unit or none, not a number."""
    number, blank, unit = re.fullmatch(r'([0-9.]+)( ?)(\S*)', option.shown).groups()
    for limit, way in zip(option.range, (-1, 1)):
        digits, of = re.fullmatch(r'([0-9.]+)(.*)', limit).groups()
        step = 1 if option.kind.form == 'Count' or float(digits) == 0 else float(digits) / 100
        yield f'{float(digits) + way * step:.10g}{of}'
    yield from (f'{number}{blank}furlong', f'nan{unit}')
    if unit:
        yield number
    if option.kind.form == 'Count':
        yield f'{number}.5'
    if option.kind.per:
        size = option.shown.partition('/')[0]
        yield from (size, f'{size}/', f'{size}/year', f'{size}/days', f'/{option.kind.per[0]}')


def wrong(option):
    if option.kind.form == 'Interface':
        return '../eth1', 'a:b', '..', 'abcdefghijklmnop'
    if option.kind.form == 'ClassName':
        return 'b:ulk', 33 * 'b'
    if option.kind.form == 'Word':
        return 'everything', '1'
    return beyond(option) if option.range else ()


def of_option(directive, option):
    """(line, message about it)"""
    for value in wrong(option):
        given = option.written(value)
        yield directive.line(given), f'{given} is not allowed; give {option.allowed}'
    if not option.name:
        yield directive.name, f'the value is missing; give {option.allowed}'
        yield f'{directive.line(option.shown)} each', 'each: unexpected; nothing may follow here'
        return
    first = option.written(option.shown)
    yield directive.line(first, first), f'option {option.name} is given twice; {first} comes first'
    if option.shown:
        for bare in (option.name, f'{option.name}='):
            yield directive.line(bare), f'{bare} has no value; give {option.allowed}'
    else:
        yield directive.line(f'{option.name}=1'), f'option {option.name} is unknown; known are {known(directive)}'
    if option.required:
        yield ' '.join((directive.name, *directive.before[1:])), f'{option.name}= is missing; give {option.allowed}'


def known(directive):
    return listed([f'{option.name}=' if option.shown else option.name for option in directive.option], 'and')


def from_the_table():
    """(lines, the one that is refused, the message about it; None if all are accepted)"""
    for directive in DIRECTIVES:
        options = directive.option or ((directive.value,) if directive.value else ())
        for option in options:
            for line, says in of_option(directive, option):
                yield (line,), line, says
        if directive.option:
            line = directive.line('nosuch=1')
            yield (line,), line, f'option nosuch is unknown; known are {known(directive)}'
            line = directive.line('=1')
            yield (line,), line, '=1 has no name before the ='
        for which in (0, 1) if options else ():
            line = directive.line(*(option.written(option.range[which] if option.range else option.shown)
                                    for option in options))
            yield (line,), line, ''
        if directive.line_of_defaults:
            yield (directive.line_of_defaults,), directive.line_of_defaults, ''
            if directive.type.endswith('*'):      # may be given once only
                lines = (directive.line_of_defaults, '', directive.line_of_defaults)
                yield lines, lines[-1], 'given once already, at {conf}:1'


TWO = ('msfrs on', 'msfrs_link rate=20Mbit interface=lo', 'msfrs_link rate=8Mbit interface=eth1', *CLASSES)
AUTO = 'rate=auto min=2Mbit max=80Mbit interface=lo'


def rated(options):
    """ON with a different link."""
    return 'msfrs on', f'msfrs_link {options}'.rstrip(), *CLASSES


def limited(options, *more):
    """ON with a different gold."""
    return *ON[:2], f'msfrs_class gold weight=4 {options}', CLASSES[1], *more


def last(*lines):
    """A case whose last line is wrong."""
    return lambda says: (lines, lines[-1], says)


#: Errors that no range describes; * matches anything.
OTHERS = (
    last('msfrs')('the value is missing; give on or off'),
    last('msfrs yes')('yes is not allowed; give on or off'),
    (ON[:2], ON[0], 'on needs a class; add a line such as msfrs_class all weight=1 default'),
    (('msfrs on', *CLASSES), 'msfrs on', 'on needs the rate of the link; add a line such as msfrs_link rate=20Mbit'),
    last('msfrs_class')(f'the name of a class is missing; give {CLASS_NAMES}'),
    last('msfrs_class g:old weight=4 default')(f'class name g:old is not allowed; give {CLASS_NAMES}'),
    last(f'msfrs_class {33 * "g"} weight=4 default')(f'class name {33 * "g"} is not allowed; give {CLASS_NAMES}'),
    last(*CLASSES, 'msfrs_class gold weight=1')('class gold is already defined at {conf}:1'),
    last('msfrs_class gold weight=4 default', 'msfrs_class silver weight=2 default')(
        'class silver is a second default; the first is gold at {conf}:1, and only one is allowed'),
    last('msfrs_class gold weight=4', 'msfrs_class silver weight=2')(
        'no class is the default; add the word default to one of gold, silver'),
    last('msfrs_access gold allow all')('class gold is unknown because there is no msfrs_class line'),
    last(*CLASSES, 'msfrs_access gild allow localhost')('class gild is unknown; known are gold, bronze'),
    last(*CLASSES, 'msfrs_access gold permit all')('permit is not allowed; give allow or deny'),
    last(*CLASSES, 'msfrs_access gold allow')(
        'the ACLs are missing; give one or more that are defined above, or all'),
    last('msfrs_user')(f'the value is missing; give {USERS}'),
    last('msfrs_user ip')(f'ip is not allowed; give {USERS}'),
    last('msfrs_user src6/0')(f'src6/0 is not allowed; give {USERS}'),
    last('msfrs_user src6/129')(f'src6/129 is not allowed; give {USERS}'),
    last('msfrs_arbiter')('the value is missing; give the name of a plugin, or the path of its file'),
    last('msfrs_arbiter msf fair')('fair is not of the form parameter=value'),
    last(*ON, 'msfrs_arbiter MSF')(
        "scheduler name 'MSF' is not allowed: lower case letters, digits and '-', or a path with '/'"),
    last(*ON, 'msfrs_arbiter nosuch')("no scheduler 'nosuch': */nosuch.so: No such file or directory; * has: *fifo*msf*"),
    last(*ON, 'msfrs_arbiter msf woke=virtual')("msf has no parameter 'woke'; it has *"),
    last(*ON, 'msfrs_arbiter msf wake=early')(
        'msf parameter wake=early is not allowed: expected one of virtual paper'),
    last('msfrs_admission none limit=5')('limit=: unexpected; none takes no parameters'),
    last(*ON, 'msfrs_admission nosuch')("no AQM 'nosuch': */nosuch.so: No such file or directory; * has: *"),
    *((lines, next(line for line in lines if line.startswith(at)), says) for lines, at, says in (
        (rated('rate=20Mbit min=2Mbit'), 'msfrs_link',
         'min= is only for rate=auto; leave it out with rate=20Mbit'),
        (rated('rate=20Mbit max=40Mbit'), 'msfrs_link',
         'max= is only for rate=auto; leave it out with rate=20Mbit'),
        *((rated(f'rate=auto interface=lo {one}'), 'msfrs_link',
           'rate=auto needs min= and max=, between which the rate is looked for; give both, as in rate=auto min=2Mbit '
           'max=80Mbit interface=eth1') for one in ('', 'min=2Mbit', 'max=80Mbit')),
        (rated('rate=auto min=80Mbit max=2Mbit interface=lo'), 'msfrs_link',
         'min=80Mbit is above max=2Mbit; give a min= that is not'),
        (rated('rate=auto min=2Mbit max=80Mbit'), 'msfrs_link',
         'rate=auto needs interface=, whose counter tells what the link brings; give it, as in interface=eth1'),
        ((*rated(AUTO), 'msfrs_quantum none'), 'msfrs_quantum',
         'none is not possible with rate=auto, as nothing then bounds the bytes in flight; give a size, as in 16 KB'),
        ((*rated(AUTO), 'workers 2'), 'msfrs_link', ''),
        (rated(AUTO), 'msfrs_link', ''),
        (TWO, TWO[1], ''),
        (rated('rate=auto min=2Mbit max=2Mbit interface=lo'), 'msfrs_link', ''),
    )),
    *((lines, lines[at], says) for lines, at, says in (
        (('msfrs on', 'msfrs_link rate=20Mbit', TWO[1], *CLASSES), 1,
         'interface= is missing; each of several links needs it, as the interface by which a connection leaves tells '
         'which link it is charged to'),
        (('msfrs on', TWO[1], f'{TWO[1]} rtt=1s', *CLASSES), 2,
         'interface lo is that of the link at {conf}:2; give the interface of the other link'),
        (('msfrs on', TWO[1], f'{TWO[2]} shared', *CLASSES), 2,
         'shared is not possible with several links; leave it out, or have one msfrs_link'),
        ((*TWO, 'workers 2'), 2,
         'several links are not possible with workers 2; give workers 1, or one msfrs_link'),
        ((*TWO, 'msfrs_excess /run/excess.sock'), -1,
         'with several links it is not known by which the reported bytes came; leave it out, or have one msfrs_link'),
        (('msfrs on', TWO[1], 'msfrs_link rate=auto interface=eth1', *CLASSES), 2,
         'rate=auto needs min= and max=, between which the rate is looked for; give both, as in rate=auto min=2Mbit '
         'max=80Mbit interface=eth1'),
    )),
    *((lines, lines[2], says) for lines, says in (
        (limited('quota=5GB/day'), 'quota= needs over=, the class to which users over quota are moved; give both'),
        (limited('over=bronze'), 'over=bronze needs quota=; give both, as in quota=5GB/day'),
        (limited('quota=5GB/day over=bulk'), 'over=bulk is not another class; known are bronze'),
        (limited('quota=5GB/day over=gold'),
         'over=gold forms a cycle (gold to gold); the last class of such a chain has no quota'),
        (limited('quota=5GB/day over=bulk', 'msfrs_class bulk weight=1 quota=1TB/month over=gold'),
         'over=bulk forms a cycle (gold to bulk to gold); the last class of such a chain has no quota'),
        (limited('quota=5GB/day over=bronze', 'workers 2'), ''),
        (limited('quota=1.5TB/month over=bulk', 'msfrs_class bulk weight=1 quota=1MB/hour over=bronze'), ''),
    )),
    last('msfrs_quota_file')('the value is missing; give the path of a file'),
    last('msfrs_quota_file quota')(
        f'quota is not allowed; give an absolute path of at most 4087 characters, as in {QUOTAS}'),
    last(f'msfrs_quota_file {QUOTAS} 30s')('30s: unexpected; nothing may follow here'),
    last(f'msfrs_quota_file {QUOTAS}', '', f'msfrs_quota_file {QUOTAS}')('given once already, at {conf}:1'),
    last('msfrs_excess')('the value is missing; give the path of a socket'),
    last('msfrs_excess run/excess.sock')(f'run/excess.sock is not allowed; give {SOCKETS}'),
    last(f'msfrs_excess /{107 * "x"}')(f'/{107 * "x"} is not allowed; give {SOCKETS}'),
    last('msfrs_excess /run/excess.sock 0660')('0660: unexpected; nothing may follow here'),
)
#: Accepted, but useless.
WARNINGS = (
    last(*ON[:1], *CLASSES, 'msfrs_link rate=20Mbit interface=msfrs-absent0')(
        'there is no interface msfrs-absent0 now; until there is, the bytes of responses are counted instead'),
    last(*ON, 'read_timeout 30 seconds', 'msfrs_queue max_wait=30s')(
        'max_wait of msfrs_queue should be below read_timeout'),
    ((*ON, 'msfrs_access bronze allow all', 'msfrs_access gold allow localhost'), CLASSES[0],
     'no request can get into class gold; give it an msfrs_access allow line before another class takes all'),
    (limited('quota=5GB/day over=bronze'), limited('quota=5GB/day over=bronze')[2],
     f'all users begin from 0 when Squid is started again; add a line such as msfrs_quota_file {QUOTAS}'),
)


@pytest.fixture
def parse(tmp_path):
    """Runs Squid's parser on lines: (exit code, stderr)."""
    conf = tmp_path / 'squid.conf'

    def run(lines):
        conf.write_text('\n'.join(lines) + '\n')
        done = subprocess.run([SQUID, '-k', 'parse', '-f', conf], capture_output=True, text=True, timeout=PATIENCE,
                              check=False)
        return done.returncode, done.stderr
    run.conf = conf
    return run


def sentence(conf, lines, at, says):
    """A pattern of the message about the line `at`, with its position and directive first."""
    place = f'{conf}:{lines.index(at) + 1 if lines.count(at) == 1 else len(lines)}'
    return f'{re.escape(f"{place}: {at.split()[0]}: {says.format(conf=conf)}")}'.replace(r'\*', '.*') + '$'


@pytest.mark.parametrize('lines, at, says', (*from_the_table(), *OTHERS), ids=lambda value: value if isinstance(
    value, str) else '')
def test_a_line_is_taken_or_refused(parse, lines, at, says):
    code, said = parse(lines)
    if says:
        assert code
        assert re.search(sentence(parse.conf, lines, at, says), said, re.MULTILINE), said
    else:
        assert not code, said


@pytest.mark.parametrize('lines, at, says', WARNINGS, ids=('interface', 'timeout', 'access', 'quota'))
def test_a_warning(parse, lines, at, says):
    code, said = parse(lines)
    assert not code
    assert re.search(f'WARNING: {sentence(parse.conf, lines, at, says)}', said, re.MULTILINE), said


def test_a_class_that_is_over_needs_no_access_line(parse):
    code, said = parse((*limited('quota=5GB/day over=bulk', 'msfrs_class bulk weight=1', f'msfrs_quota_file {QUOTAS}'),
                        'msfrs_access gold allow localhost'))
    assert not code and 'WARNING' not in said, said


def test_an_acl_that_is_not_there(parse):
    code, said = parse((*ON, 'msfrs_access gold allow nobody'))
    assert code and 'ACL not found: nobody' in said


def test_what_is_told_of_the_default_arbiter_is_what_it_has(parse):
    told = next(directive for directive in DIRECTIVES if directive.name == 'msfrs_arbiter')
    defaults = (f'{parameter.name}={parameter.default}' for parameter in told.parameter)
    code, said = parse((*ON, f'msfrs_arbiter {told.default} {" ".join(defaults)}'))
    assert not code, said
    _, said = parse((*ON, f'msfrs_arbiter {told.default} nosuch=1'))
    has = re.search(r"no parameter 'nosuch'; it has (.*)", said)[1]
    assert sorted(re.split(r'\W+', has)) == sorted(parameter.name for parameter in told.parameter)


#: Prints the values of a host that sets nothing.
DEFAULTS = r'''
#include "engine/request_scheduler.h"
#include <iostream>
int main()
{
    const msfrs::RequestConfig c;
    const auto &w = c.window;
    std::cout << "overhead " << c.overhead << "\npacket_overhead " << c.packetOverhead << "\nrtt " << c.rtt
              << "\nlaw " << (w.law == msfrs::WindowLaw::Bytes) << "\ntarget " << w.target << "\ninterval " << w.interval << "\ngrowth " << w.growth
              << "\nreserve " << w.reserve << "\npatience " << c.patience << "\nfloor " << w.floor
              << "\nmax_wait " << c.maxWait << "\nmax_per_user " << c.maxPerUser << "\nmax_queued " << c.maxQueued
              << "\nmsfrs_quantum " << c.quantum << "\n";
}
'''


def test_the_engine_has_the_same_defaults(tmp_path):
    source, program = tmp_path / 'defaults.cc', tmp_path / 'defaults'
    source.write_text(DEFAULTS)
    subprocess.run(['g++', '-std=c++17', '-I', ROOT / 'src', source, '-o', program], check=True)
    printed = subprocess.run([program], capture_output=True, text=True, check=True).stdout
    table = {option.name or directive.name: option.kind.number(option.default) for directive in DIRECTIVES
             for option in (*directive.option, directive.value) if option and option.default}
    assert {name: float(number) for name, number in map(str.split, printed.splitlines())} == table


@pytest.mark.parametrize('of, to, says', (
    ('default = "6%"', 'default = "600%"', 'msfrs_link: overhead: 600% is not within 0% to 100%'),
    ('default = "6%"', 'default = "6"', 'msfrs_link: overhead: 6 is no percent; give a number and %'),
    ('default = "6%"', 'standard = "6%"', 'msfrs_link: overhead: standard is unknown; known are kind, name, range,'),
    ('kind = "interface"', 'kind = "card"', 'msfrs_link: interface: kind card is unknown; known are rate, size,'),
    ('field = "links"', '', 'msfrs_link: field is missing'),
))
def test_a_mistake_in_the_table_is_refused(tmp_path, of, to, says):
    table = tmp_path / 'directives.toml'
    table.write_text(TABLE.read_text().replace(of, to, 1))
    with pytest.raises(Mistake, match=re.escape(says)):
        read(table)
