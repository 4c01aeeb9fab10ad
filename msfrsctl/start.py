# SPDX-License-Identifier: GPL-2.0-or-later
"""How `msfrsctl setup` starts the services that it has configured; each step records how to undo it."""
from . import firewall, probe, written
from .errors import FAILED, CtlError
from .journal import PATIENCE
from .manager import port_of
from .site import FORWARDING

SQUIDS, EDGE, EDGE_RULES, SYN, PAGE = ('msfrs-squid', 'squid'), 'msfrs-edge', 'msfrs-edge-iptables', 'msfrs-syn', \
    'msfrs-page'
#: Settings of msfrs-edge's unit for operation beside Squid.
DROP_IN = '/etc/systemd/system/msfrs-edge.service.d/msfrsctl.conf'
#: Seconds that Squid may take to exit: shutdown_lifetime is 30 by default.
END = 60.0
#: Appended to messages if msfrs-edge fails.
WITHOUT = '; --edge no leaves msfrs-edge out'


def unit_of(site, *names):
    """The first of these units that systemd knows, or None."""
    return next((name for name in names if site.system.exists('/run/systemd/system') and
                 site.system.run('systemctl', 'cat', name if '.' in name else f'{name}.service')), None)


def not_forwarded(found, site):
    """The sysctls of forwarding that should be on and are off."""
    return [name for name in written.switches(found) if (site.system.read(f'/proc/sys/{name}') or '').strip() != '1']


class Start:
    """found: the Answers; done, notes: lists to which completed steps and notes for the user are appended."""

    def __init__(self, site, journal, found, done, notes):
        self._site, self._journal, self._found, self._done, self._notes = site, journal, found, done, notes
        self._unit = unit_of(site, *SQUIDS)

    def squid(self):
        site = self._site
        # Before msfrs-iptables, which sets them only while it is up; users' other traffic does not depend on Squid.
        if off := not_forwarded(self._found, site):
            self._do(('sysctl', '-q', '-p', FORWARDING), ('sysctl', '-q', '-w', *(f'{name}=0' for name in off)))
        # Squid creates the shared memory at start-up, not at a reconfiguration.
        anew = self._found.edge == 'yes' and not self._parties()
        squid = site.squid, '-f', site.conf_path
        # Told to shut down, Squid waits for shutdown_lifetime even if nobody is connected; interrupted, for a second.
        end = 'shutdown' if self._connected() else 'interrupt'
        if self._unit:
            self._units((self._unit,), ())
            if anew and end == 'interrupt':
                site.control(end)
            self._units((), ('restart' if anew else 'reload-or-restart', self._unit))
            for unit in ('msfrsctl-expire.timer', 'msfrsctl-watch'):
                if unit_of(site, unit):
                    self._units((unit,), ('restart', unit))     # it may be of an earlier version
        elif not site.control('check'):
            self._do(squid, (*squid, '-k', 'shutdown'))
        elif anew:
            self._do((*squid, '-k', end), ('sh', '-c', '"$@" -k reconfigure || "$@"', 'sh', *squid), after=True)
            self._until(lambda: not site.control('check'), END, f'Squid has not ended after {END:g} s')
            self._do(squid, ())
        else:
            self._do((*squid, '-k', 'reconfigure'), (*squid, '-k', 'reconfigure'), after=True)

    def probe(self):
        """Checks that Squid listens and delivers a page, so that no user is redirected to a Squid that cannot."""
        site, url = self._site, self._found.probe
        site.look_again()
        _, http, https = written.PORTS[self._found.mode]
        probe.listens(site, (port_of(site.conf)[1], http, https))
        if url != 'no':
            try:
                probe.page(site, url)
            except CtlError as problem:
                raise CtlError(f'{problem}. Another page: --probe URL; none: --probe no', problem.code) from None
        self._done.append('Squid listens' + (f', and brings {url}' if url != 'no' else ''))

    def reachable(self, may_add, may_ask):
        """Checks that the firewall will let users' connections to Squid pass, before they are sent there. If not, adds
        the rules that accept them, where it may. Raises CtlError."""
        site, added = self._site, []
        site.look_again()
        if site.iptables_script is None:
            return
        while True:
            try:
                blocked = firewall.look(site, planned=True)
            except CtlError as problem:
                self._notes.append(f'whether the firewall lets users reach Squid is not known: {problem}')
                return
            if not blocked:
                self._done.append('the firewall lets users\' connections pass to Squid')
                for each in added:
                    self._keep(each)
                return
            each = blocked[0]
            if not each.accept or each in added or not (may_add or may_ask and site.system.ask(
                    f'{each}. May setup run: {each.accept} ? (yes or no)', 'yes') == 'yes'):
                raise CtlError(f'{each}, so no user would have a page. To do: {each.do}'
                               + ('; or let setup add it: --firewall add' if each.accept and not may_ask else ''), FAILED)
            self._do(('sh', '-c', each.accept), ('sh', '-c', each.undo))
            added.append(each)

    def _keep(self, added):
        """Writes an added rule into nftables.conf, where that defines its chain and nft takes the result."""
        system, path = self._site.system, firewall.NFTABLES_CONF
        text = system.read(path)
        changed = text and added.edit and firewall.edited(text, *added.edit)
        if changed and system.run('nft', '-c', '-f', '-', input=changed):
            self._journal.write(path, changed)
            self._done.append(f'wrote that rule into {path}')
        elif added.lasting.startswith('put '):
            self._notes.append(f'that rule is lost when your rules are loaded again: {added.lasting}')

    def interception(self):
        site = self._site
        if self._unit and (unit := unit_of(site, 'msfrs-iptables')):
            if unit_of(site, SYN):
                self._journal.unit(SYN)
            # It may be running with the configuration of an earlier setup.
            self._units((unit,), ('reload-or-restart', unit))
            if unit_of(site, SYN):  # which it starts, but does not reload
                self._units((), ('restart', SYN))
        elif site.iptables_script:
            if site.syn:
                self._daemon(site.syn, site.interception_conf, f'{site.run}-syn.pid')
            self._do((site.iptables_script, 'up', '--config', site.interception_conf), (site.iptables_script, 'down'))
        else:
            self._notes.append('msfrs-iptables is not installed: browsers must be told to use the proxy')

    def edge(self):
        site = self._site
        if self._found.edge == 'yes':
            if not self._parties():
                raise CtlError(f'Squid has made no shared memory {site.segment}, by which msfrs-edge could share the '
                               f'link: see cache.log{WITHOUT}', FAILED)
            try:
                self._start_edge()
                self._until(self._is_party, probe.START, 'msfrs-edge runs, but Squid does not see it share the link')
            except CtlError as problem:
                raise CtlError(f'{problem}{WITHOUT}', problem.code) from None
        elif self._found.uplink:
            self._start_edge()
            self._notes.append('msfrs-edge schedules the uplink, so nothing holds what bypasses Squid (whatever is not '
                               'TCP to port 80 or 443) to its share of the downlink')
        else:
            self._notes.append('without msfrs-edge nothing holds what bypasses Squid (whatever is not TCP to port 80 '
                               'or 443) to its share: msfrsctl status says how much that is')

    def page(self):
        """The live page, where its unit is installed; traffic does not depend on it."""
        if unit_of(self._site, PAGE):
            self._units((PAGE,), ('restart', PAGE))

    def _start_edge(self):
        site = self._site
        if self._unit and unit_of(site, EDGE):
            self._do(('systemctl', 'daemon-reload'), ())
            # They may be running with another configuration; packets pass during the restart. In one command: the first
            # starts the second as well, and another restart would kill that under way.
            self._units((EDGE, EDGE_RULES), ('restart', EDGE, EDGE_RULES))
            return
        log = self._daemon(site.edge, site.edge_conf, f'{site.run}.pid')
        self._until(lambda: site.system.run(site.edge, '--ask', 'status', site.edge_conf), probe.START,
                    f'msfrs-edge does not answer: see {log}')
        self._do((site.edge_script, 'up', '--config', site.edge_iptables_conf), (site.edge_script, 'down'))
        self._notes.append(f'there is no systemd that would start msfrs-edge with the machine: start {site.edge} '
                           f'{site.edge_conf}, then {site.edge_script} up')

    def _daemon(self, program, conf, pid):
        """Starts it without systemd, or once more. Returns the path of its log."""
        command = 'start-stop-daemon'
        end = command, '--stop', '--oknodo', '--retry', '5', '--remove-pidfile', '--pidfile', pid, '--exec', program
        if self._site.system.exists(pid):
            self._do(end, ())
        log = f'{self._site.log_directory()}/{program.rpartition("/")[2]}.log'
        self._do((command, '--start', '--background', '--make-pidfile', '--pidfile', pid, '--output', log, '--exec',
                  program, '--', conf), end)
        return log

    def _connected(self):
        """Whether Squid has a connection, as far as can be seen."""
        done = self._site.system.run('ss', '-Htnp', 'state', 'connected')
        return not done or '"squid"' in done.out

    def _parties(self):
        """The parties of Squid's link, Squid's workers included; empty if Squid has no shared memory for them."""
        try:
            return [row for report in self._site.manager.reports() for row in report.get('parties') or ()]
        except CtlError:
            return []  # Squid does not run, or refuses access to its cache manager

    def _is_party(self):
        return any(row['kind'] == 'edge' and row['live'] for row in self._parties())

    def _until(self, condition, seconds, sentence):
        until = self._site.system.monotonic() + seconds
        while not condition():
            if self._site.system.monotonic() >= until:
                raise CtlError(sentence, FAILED)
            self._site.system.sleep(probe.STEP)

    def _units(self, enable, then):
        """Enables units, then runs systemctl with the words of `then`. The journal knows how they were."""
        for unit in (*enable, *then[1:]):
            self._journal.unit(unit)
        if enable:
            self._do(('systemctl', 'enable', *enable), ())
        if then:
            self._do(('systemctl', *then), ())

    def _do(self, command, undo, after=False):
        """after: the undo command runs once the files are restored, and also if the command fails. Any other undo
        command does nothing where the command has not run: Ctrl-C may come in between."""
        if undo:
            self._journal.started(undo, after)
        ran = self._site.system.run(*command, timeout=PATIENCE)
        if not ran:
            raise CtlError(f'{" ".join(command)}: {ran.err.strip()[-300:] or f"exit code {ran.code}"}', FAILED)
        self._done.append(' '.join(command))
