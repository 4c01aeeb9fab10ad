# SPDX-License-Identifier: GPL-2.0-or-later
"""The film: shots with captions, and its frames. Pure, apart from render()."""
import asyncio
import bisect
import dataclasses
import json
import pathlib

from fieldtrial.base.errors import TrialError

from .camera import Camera

WIDTH, HEIGHT, CAPTION, HEADER = 1280, 720, 96, 48      # pixels; the last two as in stage.html
FPS = 8     # msfrs-page changes once a second; only its scrolling and the maps would need more
#: 60 s of it are 2.6 MB.
BIT_RATE = 350_000
STAGE = pathlib.Path(__file__).with_name('stage.html')


@dataclasses.dataclass
class Pane:
    """What a camera has seen. frames: of Camera. clock: counts from the beginning of the shot until `done`, a time in s
    since the epoch; None: it never was."""
    frames: list
    label: str = ''
    clock: bool = False
    done: float | None = None


@dataclasses.dataclass
class Shot:
    """A part of the film. begins: s since the epoch. captions: (s since the beginning, text, command); the first at 0.
    Without panes it is a title."""
    seconds: float
    captions: list
    panes: list = ()
    begins: float = 0.0


def last(steps, at):
    """The last of these tuples that begins with at most `at`, or the first of all."""
    return steps[max(bisect.bisect_right(steps, at, key=lambda step: step[0]) - 1, 0)]


def state(shot, at):
    """What stage.html shows `at` seconds after the beginning of a shot."""
    _, caption, command = last(shot.captions, at)
    now, panes = shot.begins + at, []
    for pane in shot.panes:
        done = pane.done is not None and now >= pane.done
        shown = min(now, pane.done or now) - shot.begins
        panes.append({'label': pane.label, 'clock': f'{shown:.1f} s' if pane.clock else '', 'done': done,
                      'file': last(pane.frames, now)[1].as_uri()})
    return {'caption': caption, 'command': command, 'panes': panes}


def states(shots):
    """The state of each frame of a film."""
    return [state(shot, number / FPS) for shot in shots for number in range(round(shot.seconds * FPS))]


def results(panes, begins):
    """The captions of a race: each time as soon as it is known."""
    there = sorted((pane.done - begins, pane.label) for pane in panes if pane.done)
    said = [f'after {seconds:.1f} s: {label}' for seconds, label in there]
    return [(seconds, f'Complete {", ".join(said[:number])}.', '')
            for number, (seconds, _) in enumerate(there, start=1)]


def encoder(out):
    """The command line that makes a WebM of JPEG frames from standard input."""
    return ['ffmpeg', '-v', 'error', '-y', '-f', 'image2pipe', '-framerate', str(FPS), '-c:v', 'mjpeg', '-i', '-',
            '-c:v', 'libvpx-vp9', '-crf', '30', '-b:v', str(BIT_RATE), '-deadline', 'good', '-cpu-used', '4',
            '-pix_fmt', 'yuv420p', '-an', str(out)]


async def render(shots, poster, out, directory):
    """Writes OUT.webm, and the frame at `poster` seconds as OUT.png. Raises TrialError."""
    seen, frame = None, b''
    encoding = await asyncio.create_subprocess_exec(*encoder(out.with_suffix('.webm')), stdin=asyncio.subprocess.PIPE)
    async with Camera.on(directory) as camera:
        await camera.shape(WIDTH, HEIGHT)
        await camera.open(STAGE.as_uri())
        await camera.wait_for('window.show')
        for number, each in enumerate(states(shots)):
            if each != seen:
                await camera.do(f'show({json.dumps(each)})')
                seen, frame = each, await camera.picture(format='jpeg', quality=95)
            if number == round(poster * FPS):
                out.with_suffix('.png').write_bytes(await camera.picture())
            encoding.stdin.write(frame)
            await encoding.stdin.drain()
    encoding.stdin.close()
    if await encoding.wait():
        raise TrialError(f'ffmpeg ended with exit code {encoding.returncode}')
