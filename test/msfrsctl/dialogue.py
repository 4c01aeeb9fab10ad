# SPDX-License-Identifier: GPL-2.0-or-later
"""`msfrsctl setup` on a simulated machine, as a process whose questions go to its terminal: `dialogue.py ROOT WORD...`.
ROOT keeps the machine's files for the next process."""
import json
import pathlib
import sys

from conftest import Gateway
from fresh_machine import equipped
from msfrsctl.system import System


def main(root, *words):
    kept = root / 'machine.json'
    conf = root / 'squid.conf'
    before = conf.read_text() if conf.exists() else None
    gateway = equipped(Gateway(root))       # it writes a squid.conf
    conf.unlink() if before is None else conf.write_text(before)
    machine = gateway.machine
    if kept.exists():
        machine.files = json.loads(kept.read_text())
    routes = root / 'routes.json'
    if routes.exists():
        machine.programs['ip -j -4 route show default'] = routes.read_text()
    machine.ask = lambda *asked: System.ask(machine, *asked)
    machine.say = lambda said: System.say(machine, said)
    code, said = gateway.run(*words)
    print(said)
    kept.write_text(json.dumps(machine.files))
    return code


if __name__ == '__main__':
    sys.exit(main(pathlib.Path(sys.argv[1]), *sys.argv[2:]))
