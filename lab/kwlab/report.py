"""The report: one HTML page that opens without a network, and its pictures beside it. What stands
in it is in `sections`."""

import time
from functools import cache
from pathlib import Path

from . import analysis, html, plots, regret, trust
from .sections import SECTIONS


class Book:
    """A dataset, or one plan of it, or some cells of that (by their keys), that is being reported:
    one machine's runs, and the pictures made so far."""

    def __init__(self, store, plan=None, cells=None):
        runs, data = (
            table if cells is None else table[table.cell.isin(cells)]
            for table in (store.runs(plan), store.measurements(plan))
        )
        if runs.empty:
            raise ValueError(
                f"the dataset has no run of {plan}; `kwlab run {plan}` makes some"
                if plan
                else "the dataset is empty; `kwlab run quick` fills it"
            )
        self.machine = int(runs.machine.iloc[-1])
        self.runs = runs[runs.machine == self.machine]
        self.every = trust.settled(data[data.machine == self.machine])
        # Algorithms that were forced are a matter of their own.
        self.data = self.every[~regret.is_forced(self.every)]
        self.facts = store.facts()[self.machine]
        plots.adopt(self.runs.library)
        self.pictures, self.files = {}, {}
        self.timelines = store.timelines(self.machine, plan)

    @cache
    def medians(self, bench, metric="us"):
        """Medians over the rounds, one row a cell."""
        return analysis.medians(self.data, bench, metric)

    @cache
    def regret(self):
        """What was chosen for collectives beside the best of all algorithms."""
        return regret.cells(self.every)

    @cache
    def message_fits(self):
        """The models of one message between two ranks."""
        found = analysis.by_round(self.data[self.data.op == "pingpong"], "p2p", "send")
        return analysis.fits({place: rounds for place, rounds in found.items() if place[2] == 2})

    @cache
    def window_fits(self):
        """The models of a put and a get of a rank's memory, with their flush."""
        puts = self.data[self.data.op.isin(["put", "get"])]
        return analysis.fits(analysis.by_round(puts, "windows", "allocated"))

    @cache
    def collective_fits(self):
        """The models of the collectives."""
        return analysis.fits(analysis.by_round(self.data, "coll", "back-to-back"))

    def picture(self, name, figure, words):
        """Keeps a picture for its file; its HTML."""
        self.pictures[name] = html.png(figure)
        plots.plt.close(figure)
        return html.image(self.pictures[name], words)


def write(store, out):
    """Writes index.html, its pictures and the pages of time lines into the directory `out`; the
    page's path."""
    book = Book(store)
    out = Path(out)
    out.mkdir(parents=True, exist_ok=True)
    sections = [(name, title, inner) for name, title, make in SECTIONS if (inner := make(book))]
    day = time.strftime("%Y-%m-%d", time.localtime(book.runs["at"].iloc[-1]))
    page = out / "index.html"
    page.write_text(html.page(f"MPI libraries on this machine, {day}", sections))
    for name, content in book.pictures.items():
        (out / f"{name}.png").write_bytes(content)
    for name, content in book.files.items():
        (out / name).write_text(content)
    return page
