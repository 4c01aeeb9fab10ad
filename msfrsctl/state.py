# SPDX-License-Identifier: GPL-2.0-or-later
"""What `msfrsctl setup` may change on the machine, besides files: looked at before the first setup and after --undo, so
that --undo can say whether all is as before."""
from . import firewall
from .start import EDGE, EDGE_RULES, PAGE, SQUIDS, SYN, unit_of

UNITS = *SQUIDS, 'msfrs-iptables', SYN, EDGE, EDGE_RULES, PAGE, 'msfrsctl-watch', 'msfrsctl-expire.timer'
SYSCTLS = 'net/ipv4/ip_forward', 'net/ipv6/conf/all/forwarding', 'net/ipv4/conf/all/accept_redirects'
#: Of each kind, the differences that are named.
MOST = 3


def look(site):
    """{what: its state}, all texts."""
    units = {f'unit {unit}': ' and '.join(site.system.run('systemctl', f'is-{state}', unit).out.strip() or 'unknown'
                                          for state in ('enabled', 'active'))
             for unit in UNITS if unit_of(site, unit)}
    # Sets change all the time, and a table of iptables without rules and policies has no effect.
    rules = {f'rules of {program}': '\n'.join(line for line in text.splitlines() if program == 'nft' or
                                               line.startswith('-') or ' DROP ' in line)
             for program, text in firewall.shape(site).items()}
    sysctls = {f'sysctl {name.replace("/", ".")}': (site.system.read(f'/proc/sys/{name}') or '').strip()
               for name in SYSCTLS}
    return units | rules | sysctls | {'qdiscs': site.system.run('tc', 'qdisc', 'show').out}


def differences(before, now):
    """Sentences."""
    found = []
    for what in dict.fromkeys([*before, *now]):
        was, is_ = before.get(what, ''), now.get(what, '')
        if was == is_:
            continue
        if '\n' not in was.strip() + is_.strip():
            found.append(f'{what}: was {was.strip() or "not there"}, is {is_.strip() or "not there"}')
            continue
        more = [line for line in is_.splitlines() if line not in was.splitlines()]
        less = [line for line in was.splitlines() if line not in is_.splitlines()]
        for word, lines in (('more', more), ('no longer', less)):
            found += [f'{what}: {word}: {line.strip()}' for line in lines[:MOST] if line.strip(' \t}')]
    return found
