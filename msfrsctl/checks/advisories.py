# SPDX-License-Identifier: GPL-2.0-or-later
"""Squid's advisories since 6.13, their fixes, and the settings that expose a gateway to them. Sources: the ChangeLog of
Squid 7, the changelogs of Debian's squid 6.13-2+deb13u4 and 7.7-1, and the patches in 6.13-2+deb13u3 and 7.7-1."""
import re
from dataclasses import dataclass
from typing import Callable

from . import WARNING, Finding

PAGE = 'https://github.com/squid-cache/squid/security/advisories'


def _icp(conf, _build):
    return conf.value('icp_port', '0') != '0'


def _ftp_allowed(conf, _build):
    """FTP is open unless a rule denies an ACL of this protocol."""
    acls = {line.words[0] for line in conf.all('acl') if line.words[1:2] == ('proto',) and 'FTP' in line.words[2:]}
    return not any(line.words[:1] == ('deny',) and set(line.words[1:]) <= acls and len(line.words) == 2
                   for line in conf.all('http_access'))


@dataclass(frozen=True)
class Advisory:
    """fixed: Squid's version; debian: the revision of Debian's 6.13-2 with the fix; exposed: whether a given squid.conf
    and build are affected."""
    name: str
    fixed: str
    debian: str
    what: str
    do: str
    exposed: Callable = lambda conf, build: True

    def state(self, number, revision, conf, build):
        """A Finding if the advisory is unfixed here, or None."""
        if _key(number) >= _key(self.fixed) or self._in_debian(revision) or not self.exposed(conf, build):
            return None
        return Finding(WARNING, f'{self.name}: {self.what}; fixed in Squid {self.fixed} and in Debian '
                                f'6.13-2+{self.debian}', self.do)

    def _in_debian(self, revision):
        match = re.search(r'6\.13-2\+deb13u(\d+)', revision or '')
        return bool(match) and int(match[1]) >= int(self.debian.removeprefix('deb13u'))


def _key(version):
    return tuple(int(part) for part in version.split('.'))


NO_ICP = 'icp_port 0, or upgrade'
NO_FTP = 'acl ftp proto FTP and http_access deny ftp before other http_access lines, or upgrade'
ADVISORIES = (
    Advisory('SQUID-2025:2 (CVE-2025-62168)', '7.2', 'deb13u1', 'error pages give credentials to scripts',
             'email_err_data off, and upgrade', lambda conf, _build: conf.value('email_err_data', 'on') != 'off'),
    Advisory('CVE-2025-59362', '7.2', 'deb13u1', 'a long OID overflows a buffer of SNMP', 'snmp_port 0, or upgrade',
             lambda conf, build: '--disable-snmp' not in build and conf.value('snmp_port', '0') != '0'),
    Advisory('SQUID-2026:1 (CVE-2026-33526)', '7.5', 'deb13u2', 'an ICP packet ends Squid', NO_ICP, _icp),
    Advisory('SQUID-2026:2 (CVE-2026-32748)', '7.5', 'deb13u3', 'an ICP packet ends Squid', NO_ICP, _icp),
    Advisory('SQUID-2026:3 (CVE-2026-33515)', '7.5', 'deb13u3', 'an ICP packet reads memory', NO_ICP, _icp),
    Advisory('SQUID-2026:4 (CVE-2026-47729)', '7.6', 'deb13u2', "an FTP server can read pieces of others' requests",
             NO_FTP, _ftp_allowed),
    Advisory('SQUID-2026:5 (CVE-2026-50012)', '7.6', 'deb13u2', 'a cache digest of a peer overflows a buffer',
             'digest no-digest at cache_peer, or upgrade',
             lambda conf, build: '--disable-cache-digests' not in build and bool(conf.all('cache_peer'))),
    Advisory('SQUID-2026:6 to 2026:9 (CVE-2026-61642, CVE-2026-62846, CVE-2026-104786)', '7.7', 'deb13u4',
             'Transfer-Encoding: identity, commands of FTP with line ends, and buffers for credentials in base64',
             f'upgrade; see {PAGE}'),
)
