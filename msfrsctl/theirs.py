# SPDX-License-Identifier: GPL-2.0-or-later
"""A squid.conf that was there before `msfrsctl setup`: what setup keeps of it, and what cannot stay."""
import fnmatch

from .errors import CtlError

#: ACLs of Squid and of Debian's squid.conf. Rules of these alone are among those that setup writes itself.
USUAL = {'all', 'manager', 'localhost', 'to_localhost', 'to_linklocal', 'localnet', 'CONNECT', 'SSL_ports', 'Safe_ports'}
#: (kind, whether a line is of that kind, what an administrator should know beside it).
KINDS = (
    ('login', lambda line: line.name in ('auth_param', 'external_acl_type') or _tests_login(line),
     'for browsers that are configured to use this proxy; no one can log in on an intercepted connection'),
    ('ICAP, eCAP', lambda line: line.name.startswith(('icap_', 'ecap_', 'adaptation_')), 'for all requests'),
    ('delay pools', lambda line: line.name.startswith('delay_'),
     'beside msfrs; what a pool withholds stays idle, so weights replace them better'),
    ('cache', lambda line: line.name in ('cache_dir', 'cache_mem', 'cache'), ''),
    ('ACLs', lambda line: line.name == 'acl' and line.words[:1] and line.words[0] not in USUAL and not _tests_login(line),
     ''),
    ('other proxies', lambda line: line.name in ('cache_peer', 'cache_peer_access', 'never_direct'), ''),
    ('rewriting', lambda line: line.name.startswith(('url_rewrite_', 'store_id_')), ''))


def kept(others):
    """A line for each kind of setting that a SquidConf has: what, and where."""
    lines = []
    for kind, is_of, note in KINDS:
        found = [line for line in others.lines if is_of(line)]
        if found:
            more = f' and {len(found) - 1} more' if len(found) > 1 else ''
            lines.append(f'  kept     {kind}: {found[0].name} ({found[0].where}{more}){"; " if note else ""}{note}')
    return lines


def logins(others):
    """Names of the ACLs that need a login."""
    return {line.words[0] for line in others.all('acl') if _tests_login(line)}


def refuse(others, own, ports):
    """A CtlError that names the first line with which intercepted users would get nothing, or escape a rule. own: path of
    setup's part of squid.conf, included first if no line of others includes it; ports: of written.PORTS."""
    for line in others.lines:
        if line.name.startswith('msfrs'):
            raise CtlError(f'{line.where} has {line.name}: remove the msfrs lines from squid.conf, which setup '
                           f'writes into {own}')
    need = logins(others)
    include = others.covers(own)
    at = others.lines.index(include) if include else -1
    for number, line in enumerate(others.lines):
        _refuse_port(line, *ports)
        if line.name != 'http_access' or line.words[:1] != ('deny',):
            continue
        names = [word.lstrip('!') for word in line.words[1:]]
        in_folder = include and line.file != include.file and line.file < own and any(
            fnmatch.fnmatch(line.file, pattern) for pattern in include.words)
        if number < at or in_folder:
            if need.intersection(names):
                raise CtlError(f'{line.where}: {line.text}: users whose connections are intercepted cannot log in, so they '
                               f'would get nothing: move this line below "include {own}"')
            if line.words[1:] == ('all',):
                raise CtlError(f'{line.where}: {line.text}: users would get nothing, as they are allowed in {own}, which '
                               f'comes later: move this line below its include')
        elif not need.intersection(names) and not USUAL.issuperset(names):
            raise CtlError(f'{line.where}: {line.text}: users would escape this rule, as they are allowed in {own}, which '
                           f'comes first: move this line and its acl above "include {own}"'
                           + ('' if include else ', a line that you add'))


def _refuse_port(line, word, http, https):
    for name, port in (('http_port', http), ('https_port', https)):
        if line.name in ('http_port', 'https_port') and line.words and line.words[0].rpartition(':')[2] == str(port) \
                and (line.name != name or word not in line.words):
            raise CtlError(f'{line.where}: {line.text}: users are sent to port {port}, which must be of {name} and '
                           f'{word}: give this one another port')


def _tests_login(line):
    return line.name == 'acl' and line.words[1:2] and line.words[1].startswith('proxy_auth')
