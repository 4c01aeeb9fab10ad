# SPDX-License-Identifier: GPL-2.0-or-later
"""Whether users' connections reach Squid through this machine's packet filter: synthetic SYNs, one for each interface
of users, family and port, pass a copy of the rules in a network namespace of their own (rehearsal.py). No packet of it
reaches the machine's own network, and Squid is not involved.
"""
import ipaddress
import json
import os
import re
import sys
from collections import namedtuple

from .errors import FAILED, CtlError

KINDS = [(family, f'{family}tables-{kind}') for family in ('ip', 'ip6') for kind in ('nft', 'legacy')]
#: Where the users' connections go: the root servers A. No filter of bogus addresses drops these.
SERVERS = {4: '198.41.0.4', 6: '2001:503:ba3e::2:30'}
SQUIDS_PORTS = {'redirect': ('redirect-ports', '3129 3130'), 'tproxy': ('tproxy-ports', '3131 3132')}
#: In the lines that msfrsctl adds, so that they are found again.
COMMENT = 'msfrs: users to Squid'
NFTABLES_CONF = '/etc/nftables.conf'
#: Seconds of one rehearsal: that of a SYN without answer, and programs on a slow machine.
LONGEST = 30


class Blocked(namedtuple('Blocked', 'interface tcp rule place accept lasting undo edit')):
    """tcp: what is dropped, such as `TCP to ports 80 and 443 (IPv4)`; rule: of `place`, '' if unknown, None if no rule
    sends them to Squid; accept: the command that lets it pass, tried in the copy, or ''; lasting: how it stays; undo:
    the command that removes it; edit: [family, table, chain, rule] of nftables, or None."""
    __slots__ = ()

    def __str__(self):
        if self.rule is None:
            return f'no rule sends users\' connections at {self.interface} to Squid, {self.tcp}'
        return f'the firewall drops users\' connections to Squid at {self.interface}, {self.tcp}: ' + (
            f'{self.rule} in {self.place}' if self.rule else
            'by which rule is not known (nft traces it: apt install nftables)')

    @property
    def do(self):
        return 'msfrsctl on' if self.rule is None else \
            f'{self.accept}; {self.lasting}' if self.accept else 'accept these connections in the firewall'


def look(site, planned=False):
    """[Blocked]. planned: before msfrs-iptables is up, with the rules that it will make. Raises CtlError if the rules
    cannot be copied."""
    copy = _Copy(site, planned)
    probes = list(copy.probes())
    results = copy.send(probes)
    failed, legacy = {}, any('-legacy' in program for program, _ in copy.saved)
    for probe, result in zip(probes, results):
        if not result['answered']:
            dropped = _dropped_by(result['trace'])
            # The kernel traces rules of nft and of iptables-nft, but not of iptables-legacy, whose counters tell.
            if legacy and not dropped:
                dropped = next(((*rule, '-legacy') for rule in result['legacy']), ())
            failed.setdefault((probe['link'], dropped), []).append(probe)
    return [_blocked(copy, link, dropped, of) for (link, dropped), of in failed.items()]


def texts(site):
    """The rules of this machine: {program: its output}, without times and counters."""
    found = {}
    for family, program in KINDS:
        # iptables-legacy-save would load the kernel's modules of a kind that is not used.
        if program.endswith('-legacy') and not (site.system.read(f'/proc/net/{family}_tables_names') or '').strip():
            continue
        done = site.system.run(f'{program}-save')
        if done and any(line.startswith('-') or ' DROP ' in line for line in done.out.splitlines()):
            found[program] = re.sub(r'\[\d+:\d+\]', '[0:0]', re.sub(r'^#.*\n?', '', done.out, flags=re.MULTILINE))
    found['nft'] = site.system.run('nft', '-s', 'list', 'ruleset').out
    return found


def shape(site):
    """The texts without elements of sets, which programs add and remove all the time."""
    return {program: re.sub(r'elements = \{[^}]*\}', '', text) for program, text in texts(site).items()}


class _Copy:
    """The rules of a machine, its interfaces, and where SYNs are sent."""

    def __init__(self, site, planned):
        self._site, self.mode = site, site.interception.get('mode', 'redirect')
        rules = texts(site)
        self._nft = _without(rules.pop('nft'), rules)
        self.saved = [[f'{program}-restore', text] for program, text in rules.items()]
        self._script = ''
        if planned:
            done = site.system.run(site.iptables_script, 'print', '--config', site.interception_conf)
            if not done:
                raise CtlError(done.err.strip() or f'{site.iptables_script} print failed', FAILED)
            self._script = '\n'.join(line for line in done.out.splitlines() if '/proc/sys/' not in line)
        key, default = SQUIDS_PORTS[self.mode]
        self.ports = [int(port) for port in site.interception.get(key, default).replace(',', ' ').split()]
        self._links = {link['ifname']: [f'{address["local"]}/{address["prefixlen"]}'
                                        for address in link.get('addr_info', ()) if address.get('scope') == 'global']
                       for link in site.system.ip('addr', 'show') if 'ifname' in link}

    def has(self, begin):
        """Whether iptables has a chain whose name begins so."""
        return any(f'\n:{begin}' in text for _, text in self.saved)

    def probes(self):
        intercepted = self._site.interception.get('intercept', '80 443').replace(',', ' ').split()
        families = (4, 6) if self._site.interception.get('ipv6', 'yes') == 'yes' else (4,)
        for link in self._site.inside:
            for family in families:
                if user := self._user(link, family):
                    for port in intercepted:
                        yield {'link': link, 'user': user, 'server': SERVERS[family], 'port': int(port)}

    def _user(self, link, family):
        """An address that a user at this interface may have, or None."""
        own = [ipaddress.ip_interface(address) for address in self._links.get(link, ())]
        own = [each for each in own if each.version == family]
        source = [ipaddress.ip_network(word, strict=False)
                  for word in self._site.interception.get('source', '').replace(',', ' ').split()]
        source = [network for network in source if network.version == family]
        near = [each.network for each in own if not source or any(each.network.overlaps(one) for one in source)]
        for network in (near + source) if own else ():
            within = next((one for one in source if one.subnet_of(network)), network)
            for number in (-2, -3, 1, 2):
                if within.num_addresses >= 4 and within[number] not in (each.ip for each in own):
                    return str(within[number])
        return None

    def send(self, probes, script=''):
        """The results of rehearsal.py."""
        named = {probe['link'] for probe in probes}
        links = {name: addresses for name, addresses in self._links.items()
                 if name in named or f'"{name}"' in self._nft and name != 'lo'}
        given = {'links': links, 'saved': self.saved, 'nft': self._nft, 'script': f'{self._script}\n{script}'.strip(),
                 'ports': self.ports, 'transparent': self.mode == 'tproxy', 'routes': self._routes(), 'probes': probes}
        done = self._site.system.run('unshare', '--user', '--map-root-user', '--net', sys.executable, '-I',
                                     os.path.join(os.path.dirname(__file__), 'rehearsal.py'),
                                     input=json.dumps(given), timeout=LONGEST)
        if not done:
            raise CtlError(f'the firewall\'s rules cannot be copied: {done.err.strip()[-300:] or done.code}', FAILED)
        return json.loads(done.out)

    def _routes(self):
        """That of TPROXY, whose packets would be forwarded without it."""
        if self.mode != 'tproxy' or self._script:
            return []
        mark, table = (self._site.interception.get(name, default) for name, default in
                       (('fwmark', '0x100/0x100'), ('table', '3129')))
        return [words for family in ('-4', '-6') for words in
                ([family, 'route', 'add', 'local', 'default', 'dev', 'lo', 'table', table],
                 [family, 'rule', 'add', 'fwmark', mark, 'lookup', table])]


def _without(nft, rules):
    """The output of `nft list ruleset` without the chains that iptables-nft has written, which nft cannot read."""
    theirs = {(family, table, chain) for family, program in KINDS if program.endswith('-nft')
              for table, text in re.findall(r'^\*(\w+)\n(.*?)^COMMIT', rules.get(program, ''), re.DOTALL | re.MULTILINE)
              for chain in re.findall(r'^:(\S+)', text, re.MULTILINE)}
    kept, at, skipping = [], (), False
    for line in nft.splitlines():
        words = line.split()
        if line.startswith('table '):
            at = tuple(words[1:3])
        elif re.match(r'\tchain ', line):
            skipping = (*at, words[1]) in theirs
        if not skipping:
            kept.append(line)
        if line == '\t}':
            skipping = False
    return '\n'.join(kept) + '\n'


def _dropped_by(trace):
    """(family, table, base chain, rule, '') of the rule or policy that dropped a packet; None if no rule did, () if no
    trace was made."""
    if not trace:
        return ()
    family, table, chain, said = trace[-1]
    if 'verdict accept' in said or said.startswith(('policy accept', 'packet:')):
        return None
    base = next(words[2] for words in reversed(trace)
                if words[:2] == [family, table] and words[3].startswith('packet:'))
    rule = said.strip().removeprefix('rule ').rpartition(' (verdict')[0] or said.strip()
    rule = re.sub(r' counter packets \d+ bytes \d+', ' counter', rule)
    rule = 'policy drop' if rule.startswith('policy drop') else rule     # followed by the packet's mark
    return family, table, base, f'{rule} ({chain})' if chain != base else rule, ''


def _blocked(copy, link, dropped, probes):
    ports = ' and '.join(dict.fromkeys(str(probe['port']) for probe in probes))
    families = ' and '.join(f'IPv{family}' for family in (4, 6)
                            if any((':' in probe['user']) == (family == 6) for probe in probes))
    tcp = f'TCP to port{"s" if " " in ports else ""} {ports} ({families})'
    if dropped is None:
        return Blocked(link, tcp, None, '', '', '', '', None)
    if not dropped:
        return Blocked(link, tcp, '', '', '', '', '', None)
    family, table, chain, rule, kind = dropped
    raw, shown, lasting, undo = _line(copy, link, family, table, chain, kind)
    passes = bool(raw) and all(result['answered'] for result in copy.send(probes, raw))
    of_nft = raw == shown and raw.startswith('nft ')
    edit = [family, table, chain, raw.partition("'")[2].rstrip("'")] if of_nft else None
    of = f' of {_tool(family)}{kind}' if kind else ''
    return Blocked(link, tcp, f'"{rule}"', f'chain {chain} of table {family} {table}{of}', shown if passes else '',
                   lasting, undo, edit)


def edited(text, family, table, chain, rule):
    """The text of nftables.conf with a rule at the beginning of a chain; None if it does not define that chain, or
    more than once."""
    found = [match for match in re.finditer(
        rf'^[ \t]*table[ \t]+{family}[ \t]+{re.escape(table)}[ \t]*{{.*?'
        rf'^[ \t]*chain[ \t]+{re.escape(chain)}[ \t]*{{[ \t]*\n'
        rf'(?P<indent>[ \t]*)type[ \t][^\n]*\n', text, re.DOTALL | re.MULTILINE)]
    if len(found) != 1:
        return None
    at = found[0].end()
    return f'{text[:at]}{found[0]["indent"]}{rule}\n{text[at:]}'


def _tool(family):
    return 'ip6tables' if family == 'ip6' else 'iptables'


def _line(copy, link, family, table, chain, kind=''):
    """(command for the copy, command to show, how it lasts, command that undoes it); kind: -legacy, or ''."""
    redirect = copy.mode == 'redirect'
    ports = copy.ports if redirect else [80, 443]
    comma = ','.join(map(str, ports))
    nft = f'iifname "{link}" tcp dport {{ {", ".join(map(str, ports))} }}'
    if not redirect:
        nft += ' meta mark & 0x100 == 0x100'
    nft += f' accept comment "{COMMENT}"'
    if any(word in chain.lower() for word in ('output', 'postrouting')):     # the answers
        return '', '', '', ''
    insert = f"nft insert rule {family} {table} {chain} '{nft}'"
    remove = (f"nft -a list chain {family} {table} {chain} | sed -n 's/.*comment \"{COMMENT}\" # handle //p' | "
              f"xargs -r -n 1 nft delete rule {family} {table} {chain} handle")
    if table == 'firewalld':
        # An interface that nobody has put into a zone is of the default one.
        zone = f'--zone="$(firewall-cmd --get-zone-of-interface={link} || firewall-cmd --get-default-zone)"'
        add = ' '.join(f'--add-port={port}/tcp' for port in ports)
        return insert, f'firewall-cmd {zone} {add}', 'the same with --permanent keeps it', \
            f'firewall-cmd {zone} {add.replace("--add", "--remove")}'
    if kind and table != 'filter':      # before the users' connections are redirected, or after
        return '', '', '', ''
    if kind or (family, chain) in (('ip', 'INPUT'), ('ip6', 'INPUT')):      # which calls chains of other names
        tool = _tool(family) + kind
        match = f'-i {link} -p tcp -m multiport --dports {comma}' + ('' if redirect else ' -m mark --mark 0x100/0x100')
        command = f'{tool} -I INPUT {match} -j ACCEPT'
        if copy.has('ufw-'):
            rule = f'allow in on {link} to any port {comma} proto tcp'
            return command, f'ufw {rule}', 'ufw keeps it', f'ufw delete {rule}'
        return command, command, 'put the same line into the file that loads your rules', \
            command.replace(' -I ', ' -D ')
    return insert, insert, f'put the line {nft} at the beginning of chain {chain} in {NFTABLES_CONF}', remove
