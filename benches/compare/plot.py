"""Draws `turns.csv` of the comparison: throughput by store and contender, and p99 below it.

    plot.py TURNS.csv PLOT.png
"""

import csv
import statistics
import sys
from collections import defaultdict

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402 - after its back end is chosen

COLOURS = {
    "pushonce": "#c1440e",
    "by hand": "#3b6ea5",
    "Python peer": "#8a8a8a",
    "two calls in a handler": "#7fb069",
    "two calls in a loop": "#b8d4a8",
    "axum reads the envelope": "#5f5f5f",
    "bare axum": "#2f2f2f",
}


def read(path):
    """Store, then contender, then how many were in flight: the turns."""
    turns = defaultdict(lambda: defaultdict(lambda: defaultdict(list)))
    with open(path, newline="") as file:
        for row in csv.DictReader(file):
            turns[row["store"]][row["contender"]][int(row["in_flight"])].append(row)
    return turns


def medians(contenders, column, scale):
    """For each contender the places of its levels, and of each level the median, and how far the least and the most are."""
    width = 0.8 / len(contenders)
    for index, (contender, levels) in enumerate(contenders.items()):
        places = [place + (index - (len(contenders) - 1) / 2) * width for place in range(len(levels))]
        turns = [[float(turn[column]) * scale for turn in turns] for turns in levels.values()]
        middle = [statistics.median(values) for values in turns]
        below = [median - min(values) for median, values in zip(middle, turns)]
        above = [max(values) - median for median, values in zip(middle, turns)]
        yield contender, width, places, middle, [below, above]


def draw_throughput(axes, contenders):
    for contender, width, places, middle, spread in medians(contenders, "messages_per_s", 1):
        axes.bar(places, middle, width, yerr=spread, capsize=1.5, label=contender, color=COLOURS[contender],
                 error_kw={"linewidth": 0.7})


def draw_latency(axes, contenders):
    # On a scale of powers a bar would have no foot to stand on.
    for contender, _, places, middle, spread in medians(contenders, "p99_us", 1 / 1000):
        axes.errorbar(places, middle, yerr=spread, fmt="o", capsize=2, color=COLOURS[contender])
    axes.set_yscale("log")


def label(axes, contenders):
    levels = next(iter(contenders.values()))
    axes.set_xticks(range(len(levels)), [f"{level} in flight" for level in levels])
    axes.set_xlim(-0.5, len(levels) - 0.5)
    axes.grid(axis="y", linewidth=0.3)
    axes.set_axisbelow(True)


def main(source, destination):
    stores = read(source)
    figure, rows = plt.subplots(2, len(stores), figsize=(4.2 * len(stores), 7), squeeze=False)
    for column, (store, contenders) in enumerate(stores.items()):
        draw_throughput(rows[0][column], contenders)
        draw_latency(rows[1][column], contenders)
        rows[0][column].set_title(store)
        for axes in rows[:, column]:
            label(axes, contenders)
    rows[0][0].set_ylabel("messages a second")
    rows[1][0].set_ylabel("p99, milliseconds")
    labels = {}
    for axes in rows[0]:
        labels.update(dict(zip(*reversed(axes.get_legend_handles_labels()))))
    figure.legend(labels.values(), labels.keys(), loc="lower center", ncols=len(labels), frameon=False)
    figure.tight_layout(rect=(0, 0.05, 1, 1))
    figure.savefig(destination, dpi=110)


main(*sys.argv[1:])
