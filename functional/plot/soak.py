"""Draws memory and open files of the soaked services: soak.py FOLDER PICTURE."""

import csv
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot  # noqa: E402

folder, picture = Path(sys.argv[1]), sys.argv[2]
figure, (memory, files) = pyplot.subplots(2, 1, sharex=True, figsize=(9, 6), height_ratios=[3, 1])
for name in ("sqlite", "redis"):
    with open(folder / f"{name}.csv", newline="") as file:
        samples = [{column: float(value) for column, value in row.items()} for row in csv.DictReader(file)]
    minutes = [sample["seconds"] / 60 for sample in samples]
    memory.plot(minutes, [sample["rss_kib"] / 1024 for sample in samples], label=name)
    files.step(minutes, [sample["files"] for sample in samples], label=name)
memory.set(title="A service under a steady load", ylabel="resident memory, MiB")
files.set(xlabel="minutes", ylabel="open files")
for part in (memory, files):
    part.set_ylim(0, 1.15 * part.get_ylim()[1])
    part.grid(alpha=0.3)
memory.legend(loc="lower right")
figure.tight_layout()
# Without a date, so that equal figures make equal files.
figure.savefig(picture, dpi=100, metadata={"Software": None})
