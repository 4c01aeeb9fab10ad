# SPDX-License-Identifier: GPL-2.0-or-later
"""msfrsctl report: makes an archive for a bug report, without your addresses and names."""
import io
import json
import os
import tarfile
import time

from .. import accesslog, text
from ..anonymise import USER, Anonymiser
from ..errors import FAILED, CtlError
from .doctor import CHECKS, findings

HELP = 'make an archive for a report of a fault, without addresses and names'
LINES = 500         #: last lines of access.log
TAIL = 1 << 18      #: bytes read from the end of other logs
COMMANDS = {'system.txt': ('uname', '-srm'), 'addresses.txt': ('ip', '-o', 'addr'), 'routes.txt': ('ip', 'route'),
            'routes6.txt': ('ip', '-6', 'route'), 'iptables.txt': ('iptables-save',),
            'ip6tables.txt': ('ip6tables-save',), 'sockets.txt': ('ss', '-s')}
#: Codes of a logformat: those with names of users and servers, and those that may contain any text.
NAMES = {'un', 'ul', 'ui', 'ue', 'us', 'msfrs::user', 'ssl::>sni', '>A', '<A', '<a'}
ANYTHING = {'>h', '<h', '>ha', '<ha', 'ea', 'et', 'note', 'credentials', 'ssl::>cert_subject', 'ssl::>cert_issuer'}
#: Built-in formats of Squid that match any line.
LOOSE = {'referrer', 'useragent'}
README = '''A report of msfrsctl. Addresses, names, logins, paths of URLs and secrets were replaced or left out, the
same one always by the same stand-in. Addresses became such as belong to nobody (192.0.2.0/24, 198.51.100.0/24,
203.0.113.0/24, 240.0.0.0/4 if those are too few, 2001:db8::/32); which of them share a network can still be seen, but
not what prefix it had. Names of classes and of ACLs stay. Look at it before you send it.
'''


def arguments(parser):
    parser.add_argument('--output', metavar='FILE', help='the archive (msfrs-report-TIME.tar.gz)')
    parser.add_argument('--probe-name', default='www.debian.org', help='as for doctor')


def gather(options, site):
    site.probe_name = options.probe_name
    raw, missing = _raw(site)
    readers = _readers(site) if 'access.log' in raw else []
    hidden = Anonymiser(_names(site, raw, readers), texts=(*raw.values(), *missing))
    if readers:
        raw['access.log'], others = _without_logins(raw['access.log'], readers, hidden)
        if others:
            missing.append(f'{text.count(others, "line")} of access.log, of no logformat of squid.conf')
    files = {name: (hidden.squid_conf if name.endswith('squid.conf') else hidden.text)(body)
             for name, body in raw.items()}
    files['README'] = ''.join(f'Not there: {hidden.text(line)}\n' for line in missing)
    for name, body in files.items():
        if left := hidden.leaks(body):
            raise CtlError(f'{len(left)} names or addresses would still be in {name}, so no archive was written; this '
                           f'is a fault of msfrsctl', FAILED)
    files['README'] = README + files['README']
    path = options.output or time.strftime('msfrs-report-%Y%m%d-%H%M%S.tar.gz', time.gmtime(site.system.now()))
    _write(path, files, site.system.now())
    return {'file': os.path.abspath(path), 'contents': sorted(files),
            'missing': [hidden.text(line) for line in missing]}


def _raw(site):
    """({name in the archive: text}, [texts that could not be obtained])."""
    files, missing = {}, []

    def take(name, ask):
        try:
            files[name] = ask()
        except (CtlError, OSError) as problem:
            missing.append(f'{name}: {problem}')
    take('squid.conf', lambda: _conf(site))
    for path in (site.interception_conf, site.edge_conf, site.edge_iptables_conf):
        if (body := site.system.read(path)) is not None:
            files[os.path.basename(path)] = body
    for page in ('msfrs', 'msfrs-metrics', 'info'):
        take(f'mgr-{page}.txt', lambda page=page: site.manager.page(page))
    take('doctor.json', lambda: json.dumps(list(findings(site, CHECKS)), indent=1) + '\n')
    take('access.log', lambda: _last_lines(accesslog.log_of(site.conf).path))
    take('cache.log', lambda: site.system.tail(site.conf.value('cache_log', ''), TAIL) or '')
    for name, words in {**COMMANDS, 'squid-version.txt': (site.squid, '-v')}.items():
        done = site.system.run(*words)
        if done:
            files[name] = done.out
        else:
            missing.append(f'{name}: {done.err.strip() or done.code}')
    return files, missing


def _conf(site):
    """All lines as Squid reads them, with the file that they are from."""
    kept, file = [], None
    for line in site.conf.lines:
        if line.file != file:
            file = line.file
            kept.append(f'# {file}')
        kept.append(line.text)
    return '\n'.join(kept) + '\n'


def _last_lines(path):
    lines = []
    for _, data in accesslog.blocks(path):
        lines = data.decode(errors='replace').splitlines() + lines
        if len(lines) >= LINES:
            break
    return '\n'.join(lines[-LINES:]) + '\n'


def _readers(site):
    """Readers of the formats that lines of access.log may have, the format of the file first."""
    formats = accesslog.formats_of(site.conf)
    known = accesslog.log_of(site.conf).format, *(formats[name] for name in formats if name not in LOOSE)
    return [accesslog.Reader(format) for format in dict.fromkeys(known) if format]


def _without_logins(log, readers, hidden):
    """(lines with logins replaced, number of lines of unknown format, which are left out as they may contain names)."""
    def instead(code, value):
        return hidden.login(value) if code in NAMES else '...' if code in ANYTHING and value != '-' else value
    lines = [next((said for reader in readers if (said := reader.replaced(line, instead)) is not None), None)
             for line in log.splitlines()]
    return ''.join(f'{line}\n' for line in lines if line is not None), lines.count(None)


def _names(site, raw, readers):
    """Names that may stand alone in texts: that of this machine, and logins."""
    names = {site.system.run('hostname').out.strip()}
    try:
        for report in site.reports:
            names |= {str(row.get(key, '')) for row in [*report.get('held', ()), *report.get('top_users', ())]
                      for key in ('user', 'host')}
    except CtlError:
        pass        # without reports, the texts cannot contain names from them

    def note(code, value):
        if code in NAMES:
            names.add(value)
        elif code == 'ru':
            names.add(accesslog.host_of(value) or '')
        return value
    for line in raw.get('access.log', '').splitlines():
        any(reader.replaced(line, note) is not None for reader in readers)
    for body in raw.values():
        names |= {match['user'] for match in USER.finditer(body)}
    return names


def _write(path, files, now):
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode='w:gz') as archive:
        for name, body in sorted(files.items()):
            data = body.encode(errors='replace')
            info = tarfile.TarInfo(f'msfrs-report/{name}')
            info.size, info.mtime = len(data), int(now)
            archive.addfile(info, io.BytesIO(data))
    try:
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), 'wb') as file:
            file.write(packed.getvalue())
    except OSError as problem:
        raise CtlError(f'cannot write {path}: {problem.strerror}; choose another with --output FILE') from None


def show(data):
    lines = [f'wrote {text.safe(data["file"], 300)}: {", ".join(data["contents"])}']
    lines += [f'note: not there: {text.safe(line, 300)}' for line in data['missing']]
    return '\n'.join([*lines, 'look at it before you send it'])
