# SPDX-License-Identifier: GPL-2.0-or-later
"""Load for the gateway: UDP of any size at any rate, and TCP at full speed. Each sender is a process."""
import contextlib
import os
import signal
import socket
import threading
import time
import traceback

from bench_site import FLOOD, SINK

UDP_SEGMENT = 103               # linux/udp.h; not in Python's socket module
HEADERS = 28                    # of IPv4 and UDP
FLOWS = 8
#: Datagrams passed to the kernel in one call; it splits them.
MOST_AT_ONCE, MOST_BYTES = 32, 60_000
#: Delay after which a sender skips the packets that it is behind.
MOST_LATE_S = 0.005
TCP_PORT, CHUNK = 5001, 1 << 18


@contextlib.contextmanager
def _child(work, cpus, realtime=False):
    """Runs work() in a child process on these processors until the block is left."""
    pid = os.fork()
    if not pid:
        try:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            os.sched_setaffinity(0, cpus)
            if realtime:
                os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
            work()
        except Exception:
            traceback.print_exc()
        finally:
            os._exit(0)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGTERM)
        os.waitpid(pid, 0)


@contextlib.contextmanager
def spinning(site):
    """Two busy-looping programs on each processor, until the block is left."""
    def spin():
        while True:
            pass
    with contextlib.ExitStack() as stack:
        for cpu in {site.gateway_cpu, *site.other_cpus}:
            for _ in range(2):
                stack.enter_context(_child(spin, {cpu}))
        yield


@contextlib.contextmanager
def flood(site, size, packets_per_s, realtime=False):
    """UDP packets of `size` bytes from the IP header, in 8 flows in turn, until the block is left."""
    payload = size - HEADERS
    at_once = max(1, min(MOST_AT_ONCE, MOST_BYTES // payload, int(packets_per_s / 500)))
    with site.source.inside(), contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) for _ in range(FLOWS)]
        for number, made in enumerate(sockets, start=1):
            made.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4 << 20)
            made.setsockopt(socket.IPPROTO_UDP, UDP_SEGMENT, payload)
            made.connect((f'{FLOOD}{number}', 9))

        def send():
            data, gap = bytes(payload * at_once), at_once / packets_per_s
            due, number = time.monotonic(), 0
            while True:
                with contextlib.suppress(OSError):      # a queue on the path is full
                    sockets[number % FLOWS].send(data)
                number += 1
                due = max(due + gap, time.monotonic() - MOST_LATE_S)
                while (left := due - time.monotonic()) > 0:
                    if left > 2e-4:
                        time.sleep(left - 1e-4)
        with _child(send, site.other_cpus, realtime):
            yield


@contextlib.contextmanager
def tcp(site, connections=4):
    """TCP from the source to the sink at full speed, until the block is left."""
    with contextlib.ExitStack() as stack:
        with site.sink.inside():
            listener = stack.enter_context(socket.create_server((SINK, TCP_PORT)))
        senders, receivers = [], []
        for _ in range(connections):
            with site.source.inside():
                senders.append(stack.enter_context(socket.create_connection((SINK, TCP_PORT), 5)))
            receivers.append(stack.enter_context(listener.accept()[0]))

        def work(made, step):
            def loop(each):
                each.setblocking(True)
                while step(each):
                    pass
            threads = [threading.Thread(target=loop, args=(each,)) for each in made]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()

        buffer = bytearray(CHUNK)
        stack.enter_context(_child(lambda: work(receivers, lambda s: s.recv_into(buffer)), site.other_cpus))
        stack.enter_context(_child(lambda: work(senders, lambda s: s.send(buffer)), site.other_cpus))
        yield
