# SPDX-License-Identifier: GPL-2.0-or-later
"""access.log: parses lines by the logformat of squid.conf, and searches backward from the end within a time limit."""
import os
import re
from collections import namedtuple

from .errors import CtlError

#: Bytes of a read. Larger reads make the kernel allocate new pages for each block, which costs half the time of the
#: search.
BLOCK = 1 << 18
#: Bytes that are searched first for the beginning of a line; most lines are shorter.
SHORT = 1 << 12
#: Bytes of the longest line that is parsed; Squid's own limit for a URL is 8 KB.
LONGEST = 1 << 16
#: Squid's built-in formats, which need no logformat line.
COMMON = '%>a %[ui %[un [%tl] "%rm %ru HTTP/%rv" %>Hs %<st'
BUILT_IN = {'squid': '%ts.%03tu %6tr %>a %Ss/%03>Hs %<st %rm %ru %[un %Sh/%<a %mt', 'common': f'{COMMON} %Ss:%Sh',
            'combined': f'{COMMON} "%{{Referer}}>h" "%{{User-Agent}}>h" %Ss:%Sh',
            'referrer': '%ts.%03tu %>a %{Referer}>h %ru', 'useragent': '%>a [%tl] "%{User-Agent}>h"'}
CODE = re.compile(r'''%(?:%|(?P<quoting>["'\[#/]?)[-0]?(?P<width>\d*)(?:\.\d+)?(?:\{[^}]*\})?'''
                  r'(?:http::)?(?P<code>(?:[a-z_]+::)?[<>]?[A-Za-z_]+)(?:\{[^}]*\})?)')
#: Codes with a space between day and zone.
DATES = {'tl', 'tg'}
#: Codes that help to explain a wait; the log with most of them is read.
TELLING = {'msfrs::class', 'msfrs::wait', 'msfrs::user', 'tr', 'ssl::>sni', 'master_xaction'}
#: Bytes that a URL has unescaped.
PLAIN = frozenset(b'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-~/')
#: Suffixes of the current file and of the file that it was rotated to.
OLDER = ('', '.0', '.1')


class Log(namedtuple('Log', 'path format')):
    """An access_log of squid.conf: its file and the format of its lines."""
    __slots__ = ()

    @property
    def explains(self):
        """Whether its lines show how a request was scheduled."""
        return '%msfrs::class' in self.format and '%msfrs::wait' in self.format


def log_of(conf):
    """The access_log with the most codes about scheduling. A CtlError if none is a file."""
    formats, logs = formats_of(conf), []
    for line in conf.all('access_log'):
        kind, separator, path = line.words[0].partition(':') if line.words else ('', '', '')
        if not separator or kind not in ('stdio', 'daemon'):
            kind, path = 'daemon', line.words[0] if line.words else ''
        if not path.startswith('/'):
            continue
        named = line.option('logformat') or next((word for word in line.words[1:2] if '=' not in word), 'squid')
        logs.append(Log(path, formats.get(named, '')))
    if not logs:
        raise CtlError(f'{conf.path} has no access_log that is a file; add one, as in '
                       f'access_log stdio:/var/log/msfrs/access.log logformat=msfrs')
    return max(logs, key=lambda log: len(TELLING & set(pattern(log.format)[1])))


def fatal_logs(conf):
    """The access_log lines that are files and end Squid when they cannot be written."""
    return [line for line in conf.all('access_log') if line.words and line.words[0].startswith('stdio:/') and
            line.option('on-error') != 'drop']


def formats_of(conf):
    """{name: logformat} of all formats that an access_log line may name."""
    return BUILT_IN | {line.words[0]: line.text.split(None, 2)[2] for line in conf.all('logformat')
                       if len(line.words) > 1}


def pattern(format):
    """The compiled pattern of a line, with a group for each code, and the codes in their order."""
    codes, parts, at = [], [], 0
    for code in CODE.finditer(format):
        parts.append(re.escape(format[at:code.start()]))
        at = code.end()
        if code['code'] is None:
            parts.append('%')
            continue
        # Padded values begin with spaces; quoted values may contain spaces.
        blanks = code['quoting'] or '{' in code[0] or code['code'] in DATES
        parts.append((r' *' if code['width'] else '') + (r'(.*?)' if blanks else r'(\S*)'))
        codes.append(code['code'])
    parts.append(re.escape(format[at:]))
    return re.compile(''.join(parts)), codes


class Reader:
    """Parses lines into records. Times in seconds, sizes in bytes; None: not logged, or `-`."""

    def __init__(self, format):
        self._pattern, self._codes = pattern(format)

    def __call__(self, line):
        """The record, or None if the line does not match the format. line: bytes."""
        match = self._pattern.fullmatch(line.decode(errors='replace').rstrip('\r'))
        if not match:
            return None
        found = {code: None if value == '-' else value for code, value in zip(self._codes, match.groups())}
        return Record.of(found)

    def replaced(self, line, by):
        """The line with each value replaced by by(code, value), or None if it does not match the format. line: text.
        """
        match = self._pattern.fullmatch(line)
        if not match:
            return None
        said, at = [], 0
        for number, code in enumerate(self._codes, 1):
            begin, end = match.span(number)
            said += line[at:begin], by(code, match[number])
            at = end
        return ''.join(said) + line[at:]


class Record(namedtuple('Record', 'ended took client user login method url host status result bytes cls wait '
                        'total_wait exchanges exchange_wait quanta window window_limit refusal over_quota id')):
    """A transaction in access.log. ended: seconds since 1970; user: as msfrs counts users; host: the server's name,
    from SNI if present; result: TCP_MISS and the like; bytes: those charged to users, else those sent to the client;
    cls: None if the request was not scheduled; wait: before its first release, None if it was never released;
    over_quota: the class whose quota its user had exceeded."""
    __slots__ = ()

    @classmethod
    def of(cls, found):
        stamp = found.get('ts')
        part = found.get('tu')
        ended = _number(stamp)
        if ended is not None and part:
            ended += (_number(part) or 0) / 10 ** len(part)
        url = found.get('ru') or found.get('>ru')
        name = found.get('ssl::>sni')
        return cls(ended, _ms(found.get('tr')), found.get('>a'),
                   found.get('msfrs::user') or found.get('un') or found.get('>a'), found.get('un'),
                   found.get('rm'), url, name or host_of(url), found.get('>Hs'), found.get('Ss'),
                   _whole(found.get('msfrs::bytes') or found.get('<st')), found.get('msfrs::class'),
                   _ms(found.get('msfrs::wait')), _ms(found.get('msfrs::total_wait')),
                   _whole(found.get('msfrs::exchanges')), _ms(found.get('msfrs::exchange_wait')),
                   _whole(found.get('msfrs::quanta')), _number(found.get('msfrs::window')),
                   _number(found.get('msfrs::window_limit')), found.get('msfrs::refusal'),
                   found.get('msfrs::over_quota'), found.get('master_xaction'))

    @property
    def began(self):
        """When the request arrived, or None."""
        return None if self.ended is None or self.took is None else self.ended - self.took

    @property
    def without_server(self):
        """Whether the transaction sent no request to a server: a cache hit, or the line that Squid logs for the start
        of an intercepted TLS connection in addition to that of its tunnel."""
        return self.cls is None and self.refusal is None and not (self.result or '').startswith('TCP_DENIED')

    def about(self, name):
        """Whether it belongs to the user, host (or a domain that includes it), URL or transaction of this name."""
        if name in (self.user, self.client, self.login, self.id):
            return True
        host, lower = (self.host or '').lower(), name.lower()
        return bool(host) and (host == lower or host.endswith('.' + lower)) or '/' in name and name in (self.url or '')


def host_of(url):
    """The host of a URL, or of HOST:PORT as in CONNECT."""
    if not url:
        return None
    rest = url.partition('://')[2] if '://' in url else url
    rest = rest.partition('/')[0].partition('?')[0].rpartition('@')[2]
    if rest.startswith('['):
        return rest[1:].partition(']')[0]
    return rest.rpartition(':')[0] if ':' in rest else rest


def _number(text):
    try:
        return float(text)
    except (TypeError, ValueError):
        return None


def _whole(text):
    return int(text) if text and text.isdigit() else None


def _ms(text):
    number = _number(text)
    return None if number is None else number / 1000


def blocks(path, end=None, size=BLOCK):
    """(offset, bytes) of whole lines, the last block first. Lines longer than LONGEST are skipped."""
    with open(path, 'rb') as file:
        end = os.fstat(file.fileno()).st_size if end is None else end
        while end > 0:
            start = max(0, end - size)
            begin = _line_at(file.fileno(), start)
            if start - begin <= LONGEST:
                yield begin, os.pread(file.fileno(), end - begin, begin)
            else:
                data = os.pread(file.fileno(), end - start, start)
                behind = data.find(b'\n') + 1 or len(data)
                yield start + behind, data[behind:]
            end = begin


def _line_at(descriptor, offset):
    """Offset of the line that contains the byte at `offset`."""
    step = SHORT
    while offset > 0:
        before = max(0, offset - step)
        at = os.pread(descriptor, offset - before, before).rfind(b'\n')
        if at >= 0:
            return before + at + 1
        offset, step = before, LONGEST
    return 0


class Found:
    """Result of a search. hits: records, their files and the offsets of their lines, newest first; reached: the time
    of the oldest line that was read, or None; whole: the search covered everything since `since`."""

    def __init__(self):
        self.hits, self.reached, self.whole = [], None, True


def search(log, name, since, most, clock, until, user=None):
    """The newest `most` records about a name that ended after `since`, from the file and the one that it was rotated
    to. The search stops when clock() is past `until`. user: what msfrs calls the user of that name, if different.
    Raises OSError if the log cannot be read."""
    reader, found = Reader(log.format), Found()
    needles = {needle.encode() for needle in (name, name.lower(), quoted(name), user or name)}
    for suffix in OLDER:
        path = log.path + suffix
        if suffix and not os.path.exists(path):
            continue
        for offset, data in blocks(path):
            for at in sorted(_lines_with(data, needles), reverse=True):
                end = data.find(b'\n', at)
                record = reader(data[at:end if end >= 0 else len(data)])
                if record and (record.about(name) or record.user == user) and (record.ended or since) >= since and \
                        not (log.explains and record.without_server and record.id != name):
                    found.hits.append((record, path, offset + at))
                    if len(found.hits) == most:
                        found.reached, found.whole = record.ended, False
                        return found
            first = reader(data[:max(data.find(b'\n'), 0)])
            if first and first.ended is not None:
                found.reached = first.ended
                if first.ended < since:
                    return found
            if clock() > until:
                found.whole = False
                return found
    return found


def since(log, begin):
    """All records that ended at `begin` or later, seconds since 1970; the newest blocks first. Raises OSError."""
    reader = Reader(log.format)
    for suffix in OLDER:
        if suffix and not os.path.exists(log.path + suffix):
            continue
        for _, data in blocks(log.path + suffix):
            records = [record for line in data.splitlines() if (record := reader(line)) and record.ended is not None]
            yield from (record for record in records if record.ended >= begin)
            if records and records[0].ended < begin:
                return


def quoted(name):
    """Percent-encoded, as in a URL. (Importing urllib takes as long as searching a hundred thousand lines.)"""
    return ''.join(chr(byte) if byte in PLAIN else f'%{byte:02X}' for byte in name.encode(errors='surrogateescape'))


def _lines_with(data, needles):
    """Offsets of lines that contain one of the needles."""
    begins = set()
    for needle in needles:
        at = data.find(needle)
        while at >= 0:
            begins.add(data.rfind(b'\n', 0, at) + 1)
            after = data.find(b'\n', at)
            at = data.find(needle, after) if after >= 0 else -1
    return begins


def served_while(log, record, path, offset, most=2000):
    """Records in service at some time while this one waited: those released before it that ended after it arrived.
    Reads `most` lines before and after; returns (records, whether these were all)."""
    if record.began is None or record.wait is None:
        return [], True
    reader, begin, out = Reader(log.format), record.began, record.began + record.wait
    found, seen = [], 0

    def take(line):
        other = reader(line)
        if other and other.began is not None and other.cls and other.wait is not None and \
                other.began + other.wait < out and other.ended > begin:
            found.append(other)
        return other
    whole = False
    for _, data in blocks(path, end=offset):
        for line in reversed(data.splitlines()):
            seen += 1
            other = take(line)
            whole = bool(other and other.ended is not None and other.ended < begin)
            if whole or seen == most:
                break
        else:
            continue
        break
    else:
        whole = True
    with open(path, 'rb') as file:
        file.seek(offset)
        file.readline(LONGEST)
        for _ in range(most):
            line = file.readline(LONGEST)
            if not line:
                break
            take(line.rstrip(b'\n'))
    return found, whole
