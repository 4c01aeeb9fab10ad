# SPDX-License-Identifier: GPL-2.0-or-later
"""Sends SYNs through a copy of a firewall; firewall.py runs it, by `unshare --user --map-root-user --net`.

Standard input has, as JSON: `links` ({name: [address/length]}), `saved` ([[program, text]] for iptables-restore and its
like), `nft` (a text for nft -f), `script` (of a shell, run after both), `ports` (Squid's listeners), `transparent`
(whether these are TPROXY's), `routes` ([[words of ip]]) and `probes` ([{link, user, server, port}]). Standard output
has, for each probe, {answered, trace, legacy}: whether a listener has answered it, what `nft monitor trace` says of it,
and which rules of iptables-legacy, which the kernel does not trace, have dropped packets of its family.

The network namespace is new and ends with this program, so nothing here reaches the machine's own network. Users are
simulated by frames written to the other end of an interface's veth.
"""
import json
import re
import select
import socket
import struct
import subprocess
import sys
import time

#: Seconds that an answer may take. It is there when the SYN has been sent; only a machine that is busy delays it.
ANSWER = 2.0
#: Before all other chains, so that a packet is traced through all of them.
TRACE = '''table inet msfrs_rehearsal {
    chain first { type filter hook prerouting priority -1000; policy accept;
        tcp flags & (syn | ack) == syn meta nftrace set 1
    }
    chain answers { type filter hook output priority -1000; policy accept;
        tcp flags & (syn | ack) == syn | ack meta nftrace set 1
    }
}
'''
SYN, SYN_ACK, FIRST_PORT = 0x02, 0x12, 40000
IP, IPV6 = 0x0800, 0x86dd


def run(*words, given=None):
    return subprocess.run(words, input=given, capture_output=True, text=True, check=False)


def need(done):
    if done.returncode:
        raise RuntimeError((done.stderr.strip() or done.stdout.strip() or str(done.args))[-300:])


#: Addresses of the two ends of each veth; /sys shows those of another namespace.
OURS, USERS = '02:00:00:00:00:01', '02:00:00:00:00:02'


def checksum(data):
    total = sum(struct.unpack(f'!{len(data) // 2}H', data))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff


def packed(address):
    return socket.inet_pton(socket.AF_INET6 if ':' in address else socket.AF_INET, address)


def syn(user, server, port, source_port):
    """The Ethernet frame of a user's SYN."""
    source, target = packed(user), packed(server)
    six = len(source) == 16
    tcp = struct.pack('!HHIIBBHHH', source_port, port, 1, 0, 5 << 4, SYN, 65535, 0, 0)
    pseudo = source + target + (struct.pack('!II', len(tcp), 6) if six else struct.pack('!BBH', 0, 6, len(tcp)))
    tcp = tcp[:16] + struct.pack('!H', checksum(pseudo + tcp)) + tcp[18:]
    if six:
        head = struct.pack('!IHBB', 6 << 28, len(tcp), 6, 64) + source + target
    else:
        head = struct.pack('!BBHHHBBH', 0x45, 0, 40, 1, 0, 64, 6, 0) + source + target
        head = head[:10] + struct.pack('!H', checksum(head)) + head[12:]
    ends = bytes.fromhex((OURS + USERS).replace(':', ''))
    return ends + struct.pack('!H', IPV6 if six else IP) + head + tcp


def answered(frame):
    """The source port of the SYN that this frame answers, or None."""
    kind = struct.unpack('!H', frame[12:14])[0]
    at = 14 + (40 if kind == IPV6 else (frame[14] & 15) * 4)
    if kind not in (IP, IPV6) or len(frame) < at + 14 or frame[20 if kind == IPV6 else 23] != 6:
        return None
    return struct.unpack('!H', frame[at + 2:at + 4])[0] if frame[at + 13] & SYN_ACK == SYN_ACK else None


def peer(link):
    """The name of a veth's other end, which no interface of the machine has."""
    return f'msfrs.{sorted(LINKS).index(link)}'


def build(given):
    for name, addresses in LINKS.items():
        need(run('ip', 'link', 'add', name, 'address', OURS, 'type', 'veth', 'peer', 'name', peer(name), 'address',
                 USERS))
        for address in addresses:
            need(run('ip', 'address', 'add', address, 'dev', name, *(['nodad'] if ':' in address else [])))
    for name in ('lo', *LINKS, *map(peer, LINKS)):
        need(run('ip', 'link', 'set', name, 'up'))
    for words in given['routes']:
        need(run('ip', *words))
    for probe in given['probes']:
        need(run('ip', 'route', 'replace', probe['user'], 'dev', probe['link']))
        need(run('ip', 'neighbour', 'replace', probe['user'], 'lladdr', USERS, 'dev',
                 probe['link'], 'nud', 'permanent'))
    for program, text in given['saved']:
        need(run(program, '--noflush', given=text))
    if given['nft']:
        need(run('nft', '-f', '-', given=given['nft']))
    if given['script']:
        need(run('sh', '-e', given=given['script']))
    run('nft', '-f', '-', given=TRACE)      # without the program nft there are no traces


def listener(family, port, transparent):
    made = socket.socket(family, socket.SOCK_STREAM)
    if family == socket.AF_INET6:
        made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    if transparent:
        made.setsockopt(*((socket.IPPROTO_IPV6, 75) if family == socket.AF_INET6 else (socket.SOL_IP, 19)), 1)
    made.bind(('', port))
    made.listen()
    return made


def tracer():
    """A running `nft monitor trace`, or None without nft. It says nothing when it has begun; rules made meanwhile are
    not traced, so its socket is looked for."""
    try:
        made = subprocess.Popen(['nft', 'monitor', 'trace'], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                text=True)
    except FileNotFoundError:
        return None
    until = time.monotonic() + ANSWER
    while time.monotonic() < until and made.poll() is None:
        with open('/proc/net/netlink', encoding='ascii') as file:
            # Protocol 12 is netfilter's; a listener has groups.
            if any(words[1] == '12' and int(words[3], 16) for words in map(str.split, list(file)[1:])):
                break
        time.sleep(0.01)
    return made


def dropping(programs):
    """[[family, table, chain, rule]] of the rules of iptables-legacy that have dropped a packet here, then policies."""
    rules, policies = [], []
    for program in programs:
        family, table = 'ip6' if program.startswith('ip6') else 'ip', ''
        for line in run(program.replace('-restore', '-save'), '-c').stdout.splitlines():
            table = line[1:] if line.startswith('*') else table
            if rule := re.match(r'\[[1-9]\d*:\d+\] (-A (\S+) .*-j (?:DROP|REJECT)\b.*)', line):
                rules.append([family, table, rule[2], rule[1]])
            elif policy := re.match(r':(\S+) DROP \[[1-9]', line):
                policies.append([family, table, policy[1], 'policy DROP'])
    return rules + policies


def main():
    given = json.load(sys.stdin)
    LINKS.update(given['links'])
    build(given)
    kept = [listener(family, port, given['transparent']) for port in given['ports']
            for family in (socket.AF_INET, socket.AF_INET6)]
    watched = tracer()
    sockets = {link: socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3)) for link in LINKS}
    for link, each in sockets.items():
        each.bind((peer(link), 3))
    waiting = {}
    for number, probe in enumerate(given['probes']):
        waiting[FIRST_PORT + number] = probe
        sockets[probe['link']].send(syn(probe['user'], probe['server'], probe['port'],
                                        FIRST_PORT + number))
    until = time.monotonic() + ANSWER
    while waiting and (left := until - time.monotonic()) > 0:
        for each in select.select(list(sockets.values()), [], [], left)[0]:
            waiting.pop(answered(each.recv(2048)), None)
    traces = ''
    if watched:
        watched.terminate()
        traces = watched.communicate()[0]
    del kept
    legacy = dropping(program for program, _ in given['saved'] if '-legacy-' in program) if waiting else []
    json.dump([{'answered': FIRST_PORT + number not in waiting, 'trace': trace_of(traces, FIRST_PORT + number),
                'legacy': [rule for rule in legacy if (rule[0] == 'ip6') == (':' in probe['user'])]}
               for number, probe in enumerate(given['probes'])], sys.stdout)


def trace_of(traces, port):
    """[[family, table, chain, rest]] of the SYN with this source port and of its answer, in order. The first line of
    each chain has the packet, the others its number alone."""
    lines = [line.split(None, 6) for line in traces.splitlines() if line.startswith('trace id ')]
    numbers = {words[2] for words in lines if re.search(rf'tcp [sd]port {port} ', words[-1])}
    return [words[3:] for words in lines if len(words) == 7 and words[2] in numbers]


LINKS = {}
if __name__ == '__main__':
    try:
        main()
    except (RuntimeError, OSError) as problem:
        sys.exit(str(problem))
