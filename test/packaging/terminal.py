# SPDX-License-Identifier: GPL-2.0-or-later
"""A shell at a terminal of a machine, at which somebody types and answers questions."""
import re

import pexpect

#: With the exit code of the last command.
PROMPT = r'\[(\d+)\]typed# '
#: Seconds that a command, or the time until its next question, may take.
PATIENCE = 600


class Terminal:
    """machine: has enter(). log: a file for everything that the terminal shows."""

    def __init__(self, machine, log):
        words = machine.enter(['bash', '--norc', '--noprofile', '-i'])
        self._child = pexpect.spawn(words[0], words[1:], encoding='utf-8', logfile=log, timeout=PATIENCE,
                                    dimensions=(50, 120))
        self._child.sendline("PS1='[$?]typed# ' PS2=")
        self._child.expect(PROMPT)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._child.close(force=True)

    def leave(self, line, answers, at):
        """Types a command, and Ctrl-C where it shows the pattern `at`. Returns its exit code and what was shown."""
        child = self._child
        child.sendline(line)
        shown = ''
        for question, said in answers.items():
            child.expect(question)
            child.expect(r': $')
            shown += child.before
            child.sendline(said)
        child.expect(at)
        shown += child.before
        child.sendintr()
        child.expect(PROMPT)
        return int(child.match[1]), _plain(shown + child.before)

    def type(self, line, answers=()):
        """Types a command, and waits for its end. answers: {pattern of a question: what is typed then}. Returns what
        was shown; an AssertionError if the command fails."""
        questions, shown = list(answers), []
        self._child.sendline(line)
        while True:
            seen = self._child.expect([PROMPT, *questions])
            shown.append(self._child.before)
            if not seen:
                break
            if not questions[seen - 1].endswith('$'):
                self._child.expect(r': $')      # the question ends with its proposal
            self._child.sendline(answers[questions[seen - 1]])
        text = ''.join(shown)
        assert self._child.match[1] == '0', f'{line}: exit code {self._child.match[1]}\n{text[-3000:]}'
        return _plain(text)


def _plain(text):
    return re.sub(r'\x1b\[[0-9;?]*[a-zA-Z]|\r', '', text)
