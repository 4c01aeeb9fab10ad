# SPDX-License-Identifier: GPL-2.0-or-later
"""Lin, Lin, Yang, Lin, "DiffServ edge routers over network processors" (2003), figures 6 to 9.

Packets of 64 bytes go through the real classifier, policer, marker and scheduler; the link is simulated
(src/satellites/sim/edge). Only figure 6 measures the machine, in processor time.
"""
import subprocess

from ..frame import Context, Figure, Row

WIRE = 100e6 / (8 * 84)  # packets/s of 64 bytes on Fast Ethernet: 148,810
EF_LIMIT = 62_500
FLOW_LIMIT = 74_400 / 500
QUEUE = 64  # packets; not given in the paper
CLASSES = ["EF", "AF1", "AF2", "AF3"]
OFFERED, POLICED, DROPPED, SENT, WAITED = range(5)


def figures(context: Context):
    run = _runner(context)
    yield _rules(run)
    seconds = 0.5 if context.quick else 2
    loads = sorted({n / 100 for n in range(5, 101, 5)} | {n / 100 for n in range(20, 45)})
    port = {load: run("port", load, seconds) for load in loads}
    yield _throughput(port)
    yield _latency(port)
    yield _flows(run, 5 if context.quick else 20)


def _runner(context: Context):
    def run(what: str, *args) -> list[list[float]]:
        words = [str(context.build / "edge_port"), what]
        if what != "rules":
            words += [str(context.build / ".libs"), *map(str, args), str(QUEUE)]
        else:
            words += map(str, args)
        done = subprocess.run(words, check=True, capture_output=True, text=True)
        return [[float(word) for word in line.split()] for line in done.stdout.splitlines()]

    return run


def _rules(run) -> Figure:
    counts = [2**n for n in range(4, 13)]
    times = {n: run("rules", n)[0] for n in counts}  # ns: range matching, linear search
    speed = {n: [64 * 8 * 1e3 / ns for ns in times[n]] for n in counts}  # Mbit/s
    rows = [
        Row("linear search: time a packet, 512 rules over 128", "", 4, times[512][1] / times[128][1], bound="shown",
            why="its throughput falls linearly"),
        Row("range matching: time a packet, 512 rules over 16", "", 9 / 4, times[512][0] / times[16][0], bound="shown",
            why="its throughput falls as k log n, at most"),
        Row("range matching on a PC with 512 rules", "Mbit/s", 20.5, speed[512][0], bound="shown", why="or more"),
        Row("linear search: time over that of range matching, 512 rules", "", 1, times[512][1] / times[512][0],
            bound="shown", why="or more"),
    ]

    def plot(canvas):
        axes = canvas.subplots()
        axes.plot(counts, [speed[n][0] for n in counts], "o-", label="range matching")
        axes.plot(counts, [speed[n][1] for n in counts], "s-", label="linear search")
        axes.plot([512], [20.5], "kx", label="the paper's PC, range matching")
        axes.set(xscale="log", yscale="log", xlabel="rules", ylabel="throughput of one processor (Mbit/s)")
        axes.set_xticks(counts, [str(n) for n in counts])
        axes.legend()

    return Figure(
        "diffserv-06", "DiffServ edge, figure 6: throughput and the number of rules", rows, plot,
        note="Classifier, policer and marker, packets of 64 bytes one by one, all of which match the last rule. "
        "Processor time of this machine, the least of seven rounds; the paper's PC is a Pentium III at 800 MHz and has "
        "the driver's and the kernel's cost in its figure, so only the shapes compare. What else runs here moves them, "
        "so they are shown and decide nothing. Of the rest of figure 6 the text prints no number.")


def _throughput(port: dict) -> Figure:
    loads = sorted(port)
    full = [row[SENT] for row in port[1.0]]

    def onset(cls: int) -> float:
        """Percent of wire speed at which the class's queue begins to drop."""
        return 100 * next(load for load in loads if port[load][cls][DROPPED] > 0.001 * WIRE)

    begins = {name: onset(CLASSES.index(name)) for name in ("AF1", "AF2", "AF3")}
    rows = [
        Row("AF3 begins to be dropped at a load of", "%", 25, begins["AF3"], within=1),
        Row("then AF2, so many percent of load later", "%", 1, begins["AF2"] - begins["AF3"], bound="least"),
        Row("then AF1, so many percent of load later", "%", 1, begins["AF1"] - begins["AF2"], bound="least"),
        Row("EF at full load: its rule's limit", "packets/s", EF_LIMIT, full[0], within=0.005 * EF_LIMIT),
        Row("AF1 : AF2 at full load", "", 2, full[1] / full[2], within=0.05),
        Row("AF2 : AF3 at full load", "", 2, full[2] / full[3], within=0.05),
        Row("EF dropped at its queue at full load", "packets/s", 0, port[1.0][0][DROPPED]),
    ]

    def plot(canvas):
        axes = canvas.subplots()
        for cls, name in enumerate(CLASSES):
            axes.plot([100 * load for load in loads], [port[load][cls][SENT] for load in loads], ".-", label=name)
        axes.axhline(EF_LIMIT, color="k", linestyle=":", linewidth=1, label="paper: EF's limit")
        axes.axvline(25, color="k", linestyle="--", linewidth=1, label="paper: AF3 begins to be dropped")
        axes.set(xlabel="load of each receiver (% of wire speed)", ylabel="sent (packets/s)")
        axes.legend()

    return Figure(
        "diffserv-07", "DiffServ edge, figure 7: priority and bandwidth control", rows, plot,
        note=f"Four receivers at constant rates into one link of 100 Mbit/s; a queue holds {QUEUE} packets, BE's "
        "quantum is one of them. EF is not in the 2:1 of the others, in the paper as here: it never asks for its share.")


def _latency(port: dict) -> Figure:
    loads = sorted(port)
    full, light = [row[WAITED] for row in port[1.0]], [row[WAITED] for row in port[0.2]]
    rows = [
        Row("AF2 : AF1 at full load", "", 2, full[2] / full[1], within=0.1),
        Row("AF3 : AF2 at full load", "", 2, full[3] / full[2], within=0.1),
        Row("EF's highest latency, of AF1's at full load", "%", 20,
            100 * max(port[load][0][WAITED] for load in loads) / full[1], bound="most",
            why="\"very low\" in the paper"),
        Row("highest less lowest of the four at 20 % load", "us", 10, max(light) - min(light), bound="most",
            why="\"the same\" in the paper"),
    ]

    def plot(canvas):
        axes = canvas.subplots()
        for cls, name in enumerate(CLASSES):
            axes.plot([100 * load for load in loads], [port[load][cls][WAITED] for load in loads], ".-", label=name)
        for factor in (1, 2, 4):
            axes.axhline(factor * full[1], color="k", linestyle=":", linewidth=1)
        axes.set(xlabel="load of each receiver (% of wire speed)", ylabel="mean latency (us)", yscale="log")
        axes.legend(title="dotted: the paper's 1 : 2 : 4")

    return Figure("diffserv-08", "DiffServ edge, figure 8: latency", rows, plot,
                  note="Of the same runs: from arrival to the end of sending. The paper prints no times, only that the "
                  "latencies of the AF classes keep the 2:1 of their shares, and what is said of EF and of light load; "
                  "the 20 % and 10 us that ours is held to are a fifth of AF1's latency and one and a half packets.")


def _flows(run, seconds: float) -> Figure:
    at = {load: [row[1] for row in run("flows", load, seconds)] for load in (0.5, 1.0)}
    mean = {load: sum(rates) / len(rates) for load, rates in at.items()}
    near = 100 * sum(abs(rate - FLOW_LIMIT) < 0.01 * FLOW_LIMIT for rate in at[1.0]) / len(at[1.0])
    rows = [
        Row("mean of the flows at half of wire speed", "packets/s", FLOW_LIMIT, mean[0.5], within=0.5),
        Row("slowest flow at half of wire speed", "packets/s", FLOW_LIMIT, min(at[0.5]), within=1.5),
        Row("fastest flow at half of wire speed", "packets/s", FLOW_LIMIT, max(at[0.5]), within=1.5),
        Row("mean of the flows at wire speed", "packets/s", FLOW_LIMIT, mean[1.0], within=0.5),
        Row("flows within 1 % of their limit at wire speed", "%", 50, near, bound="least",
            why="\"most\" in the paper"),
    ]

    def plot(canvas):
        axes = canvas.subplots()
        axes.plot(at[1.0], ".", markersize=3, label="offered twice the limit (wire speed)")
        axes.plot(at[0.5], ".", markersize=3, label="offered the limit (half of wire speed)")
        axes.axhline(FLOW_LIMIT, color="k", linestyle=":", linewidth=1, label="paper: 148.8 packets/s")
        axes.set(xlabel="flow", ylabel="sent (packets/s)", ylim=(0, 2 * FLOW_LIMIT))
        axes.legend()

    return Figure("diffserv-09", "DiffServ edge, figure 9: 500 flows, each with its rule", rows, plot,
                  note=f"500 rules, each with a token bucket of 4 packets; {seconds:g} s. In the paper some flows go "
                  "off their limit when overloaded, because the processors cannot keep up; a simulated link has no "
                  "such limit.")
