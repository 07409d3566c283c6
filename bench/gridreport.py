"""What is printed of the grid's results: geometric means, ratios, cells that are behind, all figures.

A cell's figure is the median over the rounds of the medians that bench/coll.c gives. Its ratio is our figure over the best
peer's; below 1 we are ahead. A cell is called behind in every round when even the smallest ratio of one round's figures is above
the limit: what is behind only at times is noise, and is listed apart."""
import json
import math
import statistics

OURS = "kittiwake"
BEHIND = 1.10


def size_name(size):
    for unit, name in ((1 << 20, "MB"), (1 << 10, "KB")):
        if size >= unit:
            return f"{size // unit} {name}"
    return f"{size} B" if size else ""


def figure(us):
    return "–" if us is None else f"{us:.3g}" if us < 1000 else f"{us:.0f}"


def mean(ratios):
    return math.exp(statistics.fmean(math.log(r) for r in ratios)) if ratios else None


class Cell:
    """One operation, size, number of ranks and path: the rounds' figures by library."""

    def __init__(self, path, ranks, op, size):
        self.path, self.ranks, self.op, self.size = path, ranks, op, size
        self.rounds, self.failed = {}, {}

    def add(self, line):
        if "us" in line:
            self.rounds.setdefault(line["library"], {})[line["round"]] = line["us"]["median"]
        else:
            self.failed[line["library"]] = line["failed"]

    def us(self, library):
        rounds = self.rounds.get(library)
        return statistics.median(rounds.values()) if rounds else None

    def best(self):
        """The fastest peer's name, or None."""
        peers = [name for name in self.rounds if name != OURS]
        return min(peers, key=self.us) if peers else None

    def ratio(self):
        best, ours = self.best(), self.us(OURS)
        return ours / self.us(best) if best and ours else None

    def round_ratios(self):
        """Ours over the best peer's in each round that both have."""
        ours, best = self.rounds.get(OURS, {}), self.rounds.get(self.best(), {})
        return [ours[r] / best[r] for r in sorted(ours) if r in best]

    def name(self):
        return f"{self.op} {size_name(self.size)}".strip() + f", {self.ranks} ranks, {self.path}"


class Grid:
    def __init__(self, lines):
        cells = {}
        for line in lines:
            key = line["path"], line["ranks"], line["op"], line["bytes"]
            cells.setdefault(key, Cell(*key)).add(line)
        self.cells = cells
        self.libraries = list(dict.fromkeys(line["library"] for line in lines))
        self.paths, self.ranks, ops, sizes = ([*dict.fromkeys(key[i] for key in cells)] for i in range(4))
        self.ranks.sort()
        self.rows = [(op, size) for op in ops for size in sorted(sizes) if any((op, size) == key[2:] for key in cells)]
        self.ops = ops

    def ratios(self, **only):
        of = [c for c in self.cells.values() if all(getattr(c, name) == value for name, value in only.items())]
        return [r for r in (cell.ratio() for cell in of) if r]

    def summary(self):
        behind = [cell for cell in self.cells.values() if (cell.ratio() or 0) > BEHIND]
        always = [cell for cell in behind if min(cell.round_ratios(), default=0) > BEHIND]
        parts = [self.means(), self.heat(), behind_list("behind in every round", always),
                 behind_list("not in every round", [cell for cell in behind if cell not in always]), self.failures()]
        return "\n".join(part for part in parts if part)

    def means(self):
        """Geometric means by operation."""
        head = ["operation", *self.paths, "all"]
        text = "Geometric means of our time over the best peer's:\n\n" + row(head) + rule(head)
        for op in [*self.ops, None]:
            only = {"op": op} if op else {}
            ratios = [self.ratios(path=path, **only) for path in self.paths] + [self.ratios(**only)]
            text += row([op or "all", *(f"{mean(r):.2f}" if r else "–" for r in ratios)])
        return text

    def heat(self):
        """Every cell's ratio; those behind in bold."""
        columns = [(path, n) for path in self.paths for n in self.ranks]
        head = ["our time over the best peer's", *(f"{path} {n}" for path, n in columns)]
        text = row(head) + rule(head)
        for op, size in self.rows:
            cells = [self.cells.get((path, n, op, size)) for path, n in columns]
            text += row([f"{op} {size_name(size)}".strip(), *(ratio_of(cell) for cell in cells)])
        return text

    def table(self):
        """All figures."""
        text = ""
        for path in self.paths:
            head = [f"{path}, us", "ranks", *self.libraries, "ours : best"]
            text += row(head) + rule(head)
            for op, size in self.rows:
                for n in self.ranks:
                    cell = self.cells.get((path, n, op, size))
                    if cell:
                        text += row([f"{op} {size_name(size)}".strip(), n, *(figure(cell.us(l)) for l in self.libraries), ratio_of(cell)])
            text += "\n"
        return text

    def failures(self):
        """By library and reason, with the path and ranks, and there the operations and sizes."""
        groups = {}
        for cell in self.cells.values():
            for lib, why in cell.failed.items():
                where = groups.setdefault(f"{lib} {why}, {cell.path}, {cell.ranks} ranks", {})
                where.setdefault(cell.op, []).append(size_name(cell.size))
        lines = [f"- {group}: " + "; ".join(f"{op} {', '.join(sizes)}".strip() for op, sizes in ops.items())
                 for group, ops in groups.items()]
        return "Failed:\n\n" + "\n".join(lines) + "\n" if lines else ""

    def keep(self, file, made):
        """The rounds' figures as one JSON file: cell -> library -> one figure a round, and which failed; `made`: path -> where its figures are from."""
        name = "/".join
        cells = {name(map(str, key)): {lib: list(rounds.values()) for lib, rounds in cell.rounds.items()} for key, cell in self.cells.items()}
        failed = {name(map(str, key)): cell.failed for key, cell in self.cells.items() if cell.failed}
        lines = ",\n".join(f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in cells.items())
        lost = ",\n".join(f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in failed.items())
        file.write_text(f'{{"made": {json.dumps(made)}, "unit": "us", "key": "path/ranks/op/bytes", "cells": {{\n{lines}\n}}, "failed": {{\n{lost}\n}}}}\n')


def kept(file):
    """The lines of results that Grid.keep wrote, and path -> where they are from."""
    book = json.loads(file.read_text())
    lines = []
    for name, figures in book["cells"].items():
        path, ranks, op, size = name.split("/")
        cell = {"path": path, "ranks": int(ranks), "op": op, "bytes": int(size)}
        lines += [{**cell, "library": lib, "round": r, "us": {"median": us}} for lib, all_us in figures.items() for r, us in enumerate(all_us)]
        lines += [{**cell, "library": lib, "round": 0, "failed": why} for lib, why in book["failed"].get(name, {}).items()]
    return lines, book["made"]


def joined(old, new):
    """Lines of results, old ones only of cells that are not among the new."""
    cell = lambda line: (line["path"], line["ranks"], line["op"], line["bytes"])
    measured = {cell(line) for line in new}
    lines = [line for line in old if cell(line) not in measured] + new
    return sorted(lines, key=lambda line: line["path"])


def row(cells):
    return "| " + " | ".join(str(cell) for cell in cells) + " |\n"


def rule(head):
    return "| --- |" + " ---: |" * (len(head) - 1) + "\n"


def ratio_of(cell):
    ratio = cell.ratio() if cell else None
    return "–" if ratio is None else f"**{ratio:.2f}**" if ratio > BEHIND else f"{ratio:.2f}"


def behind_list(what, cells):
    if not cells:
        return ""
    cells = sorted(cells, key=lambda cell: -cell.ratio())
    lines = [f"- {c.name()}: {c.ratio():.2f} ({figure(c.us(OURS))} us, {c.best()} {figure(c.us(c.best()))} us; "
             f"rounds {min(c.round_ratios(), default=0):.2f} to {max(c.round_ratios(), default=0):.2f})" for c in cells]
    return f"More than {BEHIND - 1:.0%} behind, {what} ({len(cells)}):\n\n" + "\n".join(lines) + "\n"
