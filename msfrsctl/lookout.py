# SPDX-License-Identifier: GPL-2.0-or-later
"""Finds faults.py's faults, again and again, for `msfrsctl watch`: rules that are gone, a firewall that keeps users
from Squid, names that are not resolved, a log without room."""
from . import firewall, interception
from .checks import ERROR, machine
from .errors import DONE, FOUND, CtlError
from .faults import EDGE, NAMES, UNREACHABLE, Fault, log, publish, published
from .start import EDGE_RULES, unit_of

#: Seconds between two looks at the rules: a change is judged at the second look after it, within 15 s.
EVERY = 5.0
#: Seconds between two questions to the name servers.
NAMES_EVERY = 60.0


#: By the fault of their rules.
UNITS = {UNREACHABLE: interception.UNIT, EDGE: EDGE_RULES}


def _changes(site, unit):
    """Whether systemd is starting or ending it at this moment, as when a firewall's unit is restarted."""
    return site.system.run('systemctl', 'is-active', unit).out.strip() in ('activating', 'deactivating', 'reloading')


def names(site):
    site.probe_name = 'www.debian.org'
    return [Fault(NAMES, f'Names are not resolved: {found.what}. To do: check the name servers; msfrsctl doctor.')
            for found in machine.names(site)
            if found.level == ERROR]


def squid_listens(site):
    done = site.system.run('ss', '-Hltn')
    ports = {words[3].rpartition(':')[2] for line in done.out.splitlines() if len(words := line.split()) > 3}
    key, default = firewall.SQUIDS_PORTS[site.interception.get('mode', 'redirect')]
    return set(site.interception.get(key, default).replace(',', ' ').split()) <= ports


def rules(site):
    """Faults of the rules, while they should be there and Squid listens."""
    if site.system.exists(site.off_path) or not site.iptables_script or not site.system.exists(site.interception_conf):
        return []
    found = []
    if site.system.run(site.iptables_script, 'check', '--config', site.interception_conf).code == FOUND:
        found.append(Fault(UNREACHABLE, 'Users\' connections are not sent to Squid: the rules of msfrs-iptables are '
                                        'gone. To put them back: msfrsctl on.'))
    if site.system.exists(site.edge_iptables_conf) and edge_runs(site) and site.system.run(
            site.edge_script, 'check', '--config', site.edge_iptables_conf).code == FOUND:
        found.append(Fault(EDGE, 'Nothing holds what bypasses Squid to its share: the rules of msfrs-edge are gone. To '
                                 'put them back: msfrsctl on.'))
    return found


def edge_runs(site):
    if unit_of(site, EDGE_RULES):
        return site.system.run('systemctl', 'is-active', '--quiet', 'msfrs-edge').code == DONE
    return bool(site.system.run(site.edge, '--ask', 'status', site.edge_conf))


class Lookout:
    """Looks again and again, for `msfrsctl watch`. Rules are judged only after a change, as that takes half a second
    of processor time."""

    def __init__(self, site):
        self._site, self._at, self._names_at = site, None, None
        self._judged, self._pending = None, False
        self._rules, self._names = [], []

    def look(self):
        site, now = self._site, self._site.system.monotonic()
        if self._at is not None and now - self._at < EVERY:
            return
        self._at = now
        site.look_again()
        if not {fault.code for fault in self._rules} <= {fault.code for fault in published(site) or ()}:
            self._judged, self._rules = None, []        # setup or on has mended what was published
        if site.system.exists(site.off_path) or not squid_listens(site):
            self._judged, self._pending, self._rules = None, False, []
        else:
            self._look_at_rules()
        if self._names_at is None or now - self._names_at >= NAMES_EVERY:
            self._names_at, self._names = now, names(site)
        before = published(site) or []
        publish(site, *self._rules, *self._names, *log(site))
        for fault in published(site):
            if fault not in before:
                site.system.say(fault.text)

    def _look_at_rules(self):
        site, texts = self._site, firewall.shape(self._site)
        if texts == self._judged:
            return
        if not self._pending:       # perhaps another program is changing them at this moment
            self._pending = True
            return
        # setup and on change rules and units by themselves.
        with site.system.lock(site.conf.directory, wait=False) as free:
            if not free or any(_changes(site, unit) for unit in UNITS.values()):
                return
            self._pending = False
            self._rules = rules(site) or self._blocked()
            for fault, unit in UNITS.items():
                if any(found.code == fault for found in self._rules) and unit_of(site, unit):
                    site.system.run('systemctl', 'stop', '--no-block', unit)   # without its rules it is not active
            self._judged = firewall.shape(site)

    def _blocked(self):
        """Where users' connections are sent to Squid and dropped, they are sent past it."""
        site = self._site
        if not site.iptables_script or not site.system.exists(site.interception_conf):
            return []
        try:
            blocked = firewall.look(site)
            if blocked:
                interception.change(site, 'drain')
        except CtlError as problem:
            site.system.say(str(problem))
            return []
        return [Fault(UNREACHABLE, f'Users cannot reach Squid and are sent past it, since {blocked[0]}. To do: '
                                   f'{blocked[0].do}; then msfrsctl on.')] if blocked else []
