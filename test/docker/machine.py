# SPDX-License-Identifier: GPL-2.0-or-later
"""A container whose init is systemd, as a machine to install on."""
import contextlib
import os
import subprocess
import time

#: If an engine may not grant all privileges: those that systemd, msfrs-edge and msfrs-iptables (sysctls) need.
SOME = ('--security-opt', 'seccomp=unconfined', '--security-opt', 'apparmor=unconfined', '--security-opt',
        'systempaths=unconfined',
        *(word for name in ('SYS_ADMIN', 'NET_ADMIN', 'SYS_NICE') for word in ('--cap-add', name)))
#: For systemd, if the machine uses cgroup v1.
LEGACY = () if os.path.exists('/sys/fs/cgroup/cgroup.controllers') else (
    'SYSTEMD_CGROUP_ENABLE_LEGACY_FORCE=1', 'systemd.unified_cgroup_hierarchy=0')

#: Makes later versions of the packages in the directory $1, in the working directory. No difference but in the files of
#: configuration of which dpkg asks if somebody has changed them.
LATER = r"""
for deb in "$1"/*.deb; do
    dpkg-deb -R "$deb" tree
    sed -i -E '/^(Version|Depends):/s/~deb1[0-9]/&+later/g' tree/DEBIAN/control
    touch tree/DEBIAN/conffiles
    while read -r file; do echo '# later' >> "tree$file"; done < tree/DEBIAN/conffiles
    dpkg-deb -Znone -b tree . > /dev/null
    rm -r tree
done
"""


def docker(*words, check=True, timeout=60, **how):
    return subprocess.run(['docker', *words], capture_output=True, text=True, timeout=timeout, check=check, **how)


class Machine:
    """A running container with systemd."""

    def __init__(self, name):
        self.name = name

    def enter(self, words):
        """The command line that runs `words` on the machine."""
        return ['docker', 'exec', '-i', self.name, *words]

    def run(self, *words, check=True, timeout=60, **how):
        done = subprocess.run(self.enter(words), capture_output=True, text=True, timeout=timeout, check=False, **how)
        assert done.returncode == 0 or not check, (words, done.stdout, done.stderr, self.said())
        return done

    def sh(self, script, **how):
        return self.run('sh', '-ec', script, **how).stdout

    def said(self):
        done = docker('logs', self.name, check=False)
        return (done.stdout + done.stderr)[-3000:]

    def show(self, unit):
        """Properties of a unit by systemctl show."""
        text = self.run('systemctl', 'show', '-p', 'ActiveState,SubState,NRestarts,Result,ConditionResult,MainPID',
                        unit).stdout
        return dict(line.split('=', 1) for line in text.splitlines())

    def write(self, path, text):
        self.run('sh', '-c', 'mkdir -p "$(dirname "$1")" && cat > "$1"', 'sh', path, input=text)


def wait_for(condition, why, seconds=60):
    """Waits until condition() is true; if that takes longer, why() gives the reason."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, why()
        time.sleep(0.2)


@contextlib.contextmanager
def boot(image, stage):
    """A machine of the image, with a loopback interface and no network. `stage` of ./check provides an engine with the
    image."""
    found = docker('image', 'inspect', image, check=False)
    assert found.returncode == 0, f'no image {image} ({found.stderr.strip()}); run: sudo ./check --only {stage}'
    name = f'{image.replace(":", "-")}-{os.getpid()}'
    common = ('run', '-d', '--name', name, '--cgroupns=private', '--network', 'none', '--tmpfs', '/run', '--tmpfs',
              '/tmp')
    made = docker(*common, '--privileged', image, *LEGACY, check=False)
    if made.returncode:
        docker('rm', '-f', name)
        made = docker(*common, *SOME, image, *LEGACY, check=False)
    try:
        assert made.returncode == 0, made.stderr
        machine = Machine(name)
        wait_for(lambda: machine.run('systemctl', 'is-system-running', check=False).stdout.strip()
                 in ('running', 'degraded'), machine.said)
        yield machine
    finally:
        docker('rm', '-f', name)
