"""Draws `turns.csv` of the comparison: throughput by store and contender, and the latency behind it.

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
    "bare axum": "#2f2f2f",
}


def read(path):
    """Store, then contender, then how many were in flight: the turns."""
    turns = defaultdict(lambda: defaultdict(lambda: defaultdict(list)))
    with open(path, newline="") as file:
        for row in csv.DictReader(file):
            turns[row["store"]][row["contender"]][int(row["in_flight"])].append(row)
    return turns


def draw(axes, contenders, column, scale):
    """Bars of the medians, with the least and the most of a turn."""
    width = 0.8 / len(contenders)
    for index, (contender, levels) in enumerate(contenders.items()):
        places, medians, below, above = [], [], [], []
        for place, turns in enumerate(levels.values()):
            values = [float(turn[column]) * scale for turn in turns]
            median = statistics.median(values)
            places.append(place + (index - (len(contenders) - 1) / 2) * width)
            medians.append(median)
            below.append(median - min(values))
            above.append(max(values) - median)
        axes.bar(places, medians, width, yerr=[below, above], capsize=1.5, label=contender, color=COLOURS[contender],
                 error_kw={"linewidth": 0.7})
    levels = next(iter(contenders.values()))
    axes.set_xticks(range(len(levels)), [f"{level} in flight" for level in levels])
    axes.set_yscale("log")
    axes.grid(axis="y", linewidth=0.3)
    axes.set_axisbelow(True)


def main(source, destination):
    stores = read(source)
    figure, rows = plt.subplots(2, len(stores), figsize=(4.2 * len(stores), 7), squeeze=False)
    for column, (store, contenders) in enumerate(stores.items()):
        draw(rows[0][column], contenders, "messages_per_s", 1)
        rows[0][column].set_title(store)
        draw(rows[1][column], contenders, "p99_us", 1 / 1000)
    rows[0][0].set_ylabel("messages a second")
    rows[1][0].set_ylabel("p99, milliseconds")
    labels = {}
    for axes in rows[0]:
        labels.update(dict(zip(*reversed(axes.get_legend_handles_labels()))))
    figure.legend(labels.values(), labels.keys(), loc="lower center", ncols=len(labels), frameon=False)
    figure.tight_layout(rect=(0, 0.05, 1, 1))
    figure.savefig(destination, dpi=110)


main(*sys.argv[1:])
