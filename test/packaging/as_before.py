# SPDX-License-Identifier: GPL-2.0-or-later
"""What a setup may change on a machine, byte by byte: before it, after --undo, and after a setup that was interrupted."""
import difflib

from later import ANSWERS, scheduled

#: Shell commands, each with what it shows.
SHOWN = {
    'files of /etc': "cd /etc; find . -printf '%p %y %m %u %g %l\\n' | sort; find . -type f -exec sha256sum {} + | sort -k 2",
    'units': "systemctl list-unit-files --no-legend --plain; for each in $(systemctl list-unit-files --no-legend --plain "
             "'*msfrs*' 'squid*' nftables.service | cut -d ' ' -f 1); do echo $each $(systemctl is-active $each); done",
    'rules of nft': 'nft -s list ruleset',
    'rules of iptables': 'for each in iptables ip6tables; do $each-save; done | sed "/^#/d; s/\\[[0-9:]*\\]//"',
    # What modules of the kernel bring along, and a count of connections, are not settings of anybody.
    'sysctls': 'sysctl -a 2> /dev/null | grep "^net\\.ip"; sysctl net.core',
    'qdiscs': 'tc qdisc show; for each in $(ls /sys/class/net); do tc filter show dev $each; done',
    'routes': 'for each in -4 -6; do ip $each rule; ip $each route show table all; done | sed "s/ expires [0-9]*sec//"',
}
#: What is typed at a question, in the order of the questions of a first setup.
QUESTIONS = [question for question in ANSWERS if not question.endswith('$')]
WORKS = 'starting Squid'


def snapshot(machine):
    return {what: machine.sh(command) for what, command in SHOWN.items()}


def assert_as_before(machine):
    now = snapshot(machine)
    differs = [line for what, was in machine.before_setup.items() if was != now[what]
               for line in (f'{what}:', *difflib.unified_diff(was.splitlines(), now[what].splitlines(), lineterm='', n=0))]
    assert not differs, '\n'.join(differs)


def undone(machine, user):
    """--undo says that all is as before, and it is."""
    said = machine.sh('msfrsctl setup --undo', timeout=200)
    assert said.endswith('All is as before the first setup: files, units, rules, sysctls and queueing disciplines.\n'), said
    assert_as_before(machine)


def what_is_not_as_before_is_named(machine, user):
    """A setting that somebody has changed since is none of setup's, but --undo does not say that all is as before."""
    with machine.terminal() as terminal:
        terminal.type('msfrsctl setup', ANSWERS)
    machine.sh('nft add table inet theirs')
    said = machine.sh('msfrsctl setup --undo', timeout=200)
    assert 'All is as before' not in said and 'not as before: rules of nft' in said, said
    machine.sh('nft delete table inet theirs')


def interrupted(machine, user):
    """Ctrl-C at each question, and while it works: nothing is left of it. Then three setups."""
    for number, question in enumerate((*QUESTIONS, WORKS)):
        with machine.terminal() as terminal:
            code, said = terminal.leave('msfrsctl setup', {each: ANSWERS[each] for each in QUESTIONS[:number]},
                                        question)
        assert code and 'interrupted' in said, said
        assert_as_before(machine)
    for _ in range(3):
        with machine.terminal() as terminal:
            terminal.type('msfrsctl setup', ANSWERS)
        scheduled(machine, user)


CHECKS = (('undo gives back what was, byte by byte', undone),
          ('undo names what is not as before', what_is_not_as_before_is_named),
          ('left at each question, then set up three times', interrupted))
