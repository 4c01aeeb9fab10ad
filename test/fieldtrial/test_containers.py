# SPDX-License-Identifier: GPL-2.0-or-later
"""Hosts behind an agent: commands run there, and started processes do not outlive their owner. No container is needed:
an agent is a process."""
import contextlib
import os
import pathlib
import select
import signal
import socket
import subprocess
import sys

import pytest

from fieldtrial.base.errors import TrialError
from fieldtrial.site import agent, containers, messages
from fieldtrial.site.host import HostError
from fieldtrial.site.processes import Daemon, listens

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture
def running(tmp_path, monkeypatch):
    """The process of an agent in the role 'gw'."""
    monkeypatch.setattr(agent, 'DIRECTORY', str(tmp_path))
    with subprocess.Popen([sys.executable, '-m', 'fieldtrial.site.agent', 'gw'], cwd=ROOT, stdout=subprocess.PIPE,
                          env={**os.environ, 'MSFRS_HOSTS': str(tmp_path)}) as process:
        assert process.stdout.readline() == b'gw: ready\n'
        yield process
        process.terminate()


@pytest.fixture
def host(running):
    """The host, as used by the trial."""
    return containers.Host('gw', 'gw')


def is_healthy():
    return agent.main(['--check', 'gw']) == 0


def test_a_command_runs_to_its_end(host):
    assert host.run('cat', input='naïve\n') == 'naïve\n'
    with pytest.raises(HostError, match="exit code 3 from: sh -c echo why >&2; exit 3\n  why"):
        host.run('sh', '-c', 'echo why >&2; exit 3')
    assert host.run('sh', '-c', 'echo said; exit 3', check=False) == 'said\n'
    with pytest.raises(HostError, match='/nowhere/program: not found in the container of gw; build the images again'):
        host.run('/nowhere/program')
    with pytest.raises(HostError, match='no end after 0.2 s: sleep 60'):
        host.run('sleep', 60, timeout=0.2)


def test_a_long_answer_arrives_whole(host):
    assert len(host.run('head', '-c', 3_000_000, '/dev/zero')) == 3_000_000


def test_a_daemon_runs_until_it_is_stopped(host, tmp_path):
    log = tmp_path / 'log'
    with Daemon(host, ['sh', '-c', 'echo hello; exec sleep 60'], log) as daemon:
        daemon.wait_until(lambda: log.read_text() == 'hello\n', 'saying hello')
        daemon.check()
        assert daemon.usage()[1] > 0
    assert daemon.poll() == -signal.SIGTERM
    assert is_healthy()


def test_a_daemon_and_what_it_started_are_stopped_and_go_on(host, tmp_path):
    """Such as nginx and its worker."""
    def states():
        return {pathlib.Path(f'/proc/{pid}/stat').read_text().rpartition(')')[2].split()[0] for pid in pids}

    log = tmp_path / 'log'
    with Daemon(host, ['sh', '-c', 'sleep 60 & echo $$ $!; wait'], log) as daemon:
        daemon.wait_until(lambda: log.read_text().endswith('\n'), 'starting')
        pids = log.read_text().split()
        daemon.signal_group(signal.SIGSTOP)
        daemon.wait_until(lambda: states() == {'T'}, 'standing still')
        daemon.signal_group(signal.SIGCONT)
        daemon.wait_until(lambda: states() == {'S'}, 'going on')
        daemon.check()
        daemon.signal_group(signal.SIGTERM)
        assert daemon.wait(60) == -signal.SIGTERM


def test_what_a_daemon_uses_is_what_its_children_use_too(host, tmp_path):
    with Daemon(host, ['sh', '-c', '(while :; do :; done) & wait'], tmp_path / 'log') as daemon:
        daemon.wait_until(lambda: daemon.usage()[0] >= 0.2, 'using the processor')
        daemon.signal_group(signal.SIGTERM)
        daemon.wait(60)
    assert daemon.usage() is None


def test_what_a_daemon_prints_can_be_read(host, tmp_path):
    daemon = Daemon(host, ['sh', '-c', 'echo ready; exec sleep 60'], tmp_path / 'log', stdout=subprocess.PIPE)
    assert daemon.stdout.readline() == b'ready\n'
    assert daemon.stop() == -signal.SIGTERM


def test_a_daemon_that_dies_is_told_and_the_health_check_fails(host, tmp_path):
    daemon = Daemon(host, ['sh', '-c', 'echo why; exit 7'], tmp_path / 'log')
    assert daemon.wait(10) == 7
    with pytest.raises(TrialError, match='sh ended with exit code 7(.|\n)*why'):
        daemon.check()
    assert not is_healthy()


def test_a_program_that_is_not_there(host, tmp_path):
    with pytest.raises(FileNotFoundError, match='/nowhere/daemon'):
        Daemon(host, ['/nowhere/daemon'], tmp_path / 'log')


def test_what_was_started_does_not_outlive_who_asked(host, tmp_path):
    daemon = Daemon(host, ['sleep', '60'], tmp_path / 'log')
    end = os.pidfd_open(daemon.pid)
    with contextlib.closing(daemon._process._connection):   # as if this process had been killed
        pass
    assert select.select([end], [], [], 10)[0], 'the daemon still runs'
    os.close(end)


def test_an_agent_that_goes_is_said(host, running, tmp_path):
    daemon = Daemon(host, ['sleep', '60'], tmp_path / 'log')
    running.kill()
    running.wait()
    with pytest.raises(TrialError, match='the container of gw has gone'):
        daemon.wait(10)
    os.kill(daemon.pid, signal.SIGKILL)   # in a container, it disappears with the agent
    with pytest.raises(TrialError, match='the container of gw has gone'):
        host.run('true')
    assert not is_healthy()


def test_sockets_are_made_there(host):
    with socket.create_server(('127.0.0.1', 0)) as server:
        port = server.getsockname()[1]
        assert listens(host, port)
        with host.socket(socket.AF_INET, socket.SOCK_STREAM, source='127.0.0.7', peer=('127.0.0.1', port),
                         timeout=5.0) as made:
            connection, peer = server.accept()
            with connection:
                assert peer[0] == '127.0.0.7'
                made.sendall(b'x')
                assert connection.recv(1) == b'x'
    with pytest.raises(ConnectionRefusedError):
        host.socket(socket.AF_INET, socket.SOCK_STREAM, peer=('127.0.0.1', port), timeout=5.0)


def test_only_files_of_proc_are_opened(host):
    with host.open('/proc/net/dev') as file:
        assert 'lo:' in file.read()
    for path in ('/etc/passwd', '/proc/../etc/passwd'):
        with pytest.raises(PermissionError):
            host.open(path)
    with pytest.raises(FileNotFoundError):
        host.open('/proc/nothing')


def test_a_kernel_setting_that_is_wrong_is_named(host):
    host.set_kernel(['kernel.ostype=Linux'])
    with pytest.raises(TrialError, match='gw: sysctl kernel.ostype is Linux and must be Minix; it is set under'):
        host.set_kernel(['kernel.ostype=Minix'])


@contextlib.contextmanager
def group(directory, machine):
    """An agent of a group on a machine of this name; returns when it has stated its role."""
    with subprocess.Popen(['unshare', '--uts', 'sh', '-c', 'hostname "$0" && exec "$@"', machine, sys.executable, '-m',
                           'fieldtrial.site.agent', '--group', 'users'], cwd=ROOT, stdout=subprocess.PIPE, text=True,
                          env={**os.environ, 'MSFRS_HOSTS': str(directory)}) as process:
        yield process, process.stdout.readline().removesuffix(': ready\n')
        process.terminate()


@pytest.mark.skipif(os.geteuid() != 0, reason='names machines, which takes root')
def test_each_group_takes_the_first_role_that_is_free(tmp_path, monkeypatch):
    monkeypatch.setattr(agent, 'DIRECTORY', str(tmp_path))
    monkeypatch.setattr(socket, 'gethostname', lambda: 'third')
    assert containers.ContainerFabric().groups == ('users-1',), 'the one that is waited for'
    with group(tmp_path, 'first') as (_, first), group(tmp_path, 'second') as (second, role):
        assert (first, role) == ('users-1', 'users-2')
        assert agent.main(['--check', '--group', 'users']) == 1
        second.kill()    # its socket remains, its lock does not
        second.wait()
        assert containers.ContainerFabric().groups == ('users-1', 'users-2')
        with group(tmp_path, 'third') as (_, third):
            assert third == 'users-2'
            assert agent.main(['--check', '--group', 'users']) == 0
            assert containers.ContainerFabric().given == ('users-1', 'users-2', 'gw', 'isp', 'names', 'domestic',
                                                          'overseas')
    assert agent.group_roles('users') == (), 'who ends in order leaves no socket'


def test_a_container_that_does_not_run_is_said(tmp_path, monkeypatch):
    monkeypatch.setattr(agent, 'DIRECTORY', str(tmp_path))
    monkeypatch.setattr(containers, 'START_S', 0.0)
    with containers.ContainerFabric() as fabric, \
            pytest.raises(TrialError, match='the container of isp does not answer .*/isp.sock: No such file'):
        fabric.host('isp')


def test_a_message_too_long_is_refused():
    left, right = socket.socketpair()
    with left, right:
        left.sendall(messages.LENGTH.pack(messages.LONGEST + 1))
        with pytest.raises(ValueError, match='at most'):
            messages.receive(right)


def test_an_agent_survives_nonsense(host, running, tmp_path):
    for data in (b'', b'\x01', messages.LENGTH.pack(9) + b'not JSON!', messages.LENGTH.pack(2) + b'[]',
                 messages.LENGTH.pack(13) + b'{"do":"none"}', messages.LENGTH.pack(12) + b'{"do":"run"}'):
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(agent.path_of('gw'))
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
            assert connection.recv(1) == b''
    assert running.poll() is None and is_healthy()
