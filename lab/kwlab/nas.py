"""The papers' tables of the NAS benchmarks beside today's kernels of apps/nas: MPI/MBCF's Tables 2
to 9 (plan seed000-npb), the thesis' Figure 4.12 and Table 3.1 (plan seed001-nas)."""

from . import plots, programs, trust
from .html import Ratio, paragraph
from .libraries import OURS
from .papers import UDP, WITHOUT, seed, show
from .words import NETWORK, change, networks, per_cent

WRITE, NO_WRITE, SHORT = (f"{OURS} ({variant})" for variant in ("write", "no write", "short eager"))
THESIS = "the thesis"


def mbcf(book):
    """Tables 2 to 9 of MPI/MBCF."""
    found, paper = programs.cells(book, "seed000-npb"), seed("000")["npb"]
    if not found:
        return ""
    counts = {p for one in paper["program"] for p in one["processes"]}
    counts = sorted(counts | {ranks for *_, ranks in found})
    columns = [f"{p} processes" if p > 1 else "1 process" for p in counts]
    return (
        show("000", "npb", source=paper["source"])
        + show("000", "characteristics", characteristics(book, found, paper))
        + show("000", "times", times(found, paper, counts), columns)
    )


def times(found, paper, counts):
    """A row a program, network and library."""
    rows = []
    for name, then, today in programs_of(found, paper):
        for one in then:
            for who, seconds in zip(paper["columns"], one["seconds"]):
                of = {p: programs.Figure({0: s}, {}) for p, s in zip(one["processes"], seconds)}
                where = f"the paper, Table {one['table']}"
                rows.append((name, where, who, *with_speed_up(of, counts)))
        for net, here in today:
            for who in programs.who(here):
                of = {ranks: one[who] for ranks, one in here.items() if who in one}
                rows.append((name, f"today, {NETWORK[net]}", who, *with_speed_up(of, counts)))
    return rows


def programs_of(found, paper):
    """Programs in the paper's order, then ours that it has not: name, the paper's, and of each
    network {ranks: {who: Figure}}."""
    names = [one["name"] for one in paper["program"]] + [op.upper() for op, *_ in found]
    for name in dict.fromkeys(names):
        today = {net: {} for net in networks(net for _, _, net, _ in found)}
        for (op, _, net, ranks), of in found.items():
            if op.upper() == name:
                today[net][ranks] = of
        yield (
            name,
            [one for one in paper["program"] if one["name"] == name],
            [(net, here) for net, here in today.items() if here],
        )


def with_speed_up(figures, counts):
    """A cell for each number of processes."""
    alone = figures.get(1)
    return [None if p not in figures else speed_up(figures[p], alone) for p in counts]


def speed_up(figure, alone):
    """Seconds, and the speed-up where both count and their rounds agree; with the ranges of the
    rounds."""
    told = figure.words(figure.seconds)
    if not figure.counts or not alone or not alone.counts:
        return told
    found = trust.against(alone.measured, figure.measured)
    how = "rounds disagree" if found.grey else programs.said(measured(found), "{:.2f}".format)
    return f"{told} [{how}]"


def measured(found):
    """A ratio (`trust.Against`) as a figure with rounds."""
    return trust.Measured(found.ratio, dict(enumerate(found.rounds)), found.grey)


def characteristics(book, found, paper):
    """Table 2: the paper's, and today's at the most ranks."""
    rows = []
    for name, then, today in programs_of(found, paper):
        for one in then:
            sizes = one["megabytes"], float(one["messages"]), per_cent(one["written"] / 100, 2)
            beside = one["beside_mpich"], one["beside_nsr"]
            rows.append((name, "the paper, Table 2", 16, *sizes, None, *beside))
        for net, here in today:
            ranks, of = max(here.items(), key=lambda one: one[0])
            beside = over(of, "mpich", OURS), over(of, NO_WRITE, WRITE)
            sizes = sent(book, (name.lower(), net, ranks), of)
            rows.append((name, f"today, {NETWORK[net]}", ranks, *sizes, *beside))
    return rows


def over(of, one, other):
    """The ratio of two libraries' times and its range, where both count; faint where rounds
    disagree."""
    if any(who not in of or not of[who].counts for who in (one, other)):
        return None
    found = trust.against(of[one].measured, of[other].measured)
    return programs.said(measured(found), "{:.2f}".format)


def sent(book, cell, of):
    """MB and messages a second, and the shares of the bytes that were written into announced
    receives, as it is and with short eager."""
    total, short = counted(book, cell, "write"), counted(book, cell, "short eager")
    seconds = of[WRITE].measured if WRITE in of and of[WRITE].counts else None
    much, many = (programs.sent(total, what) for what in ("bytes", "sent"))
    rates = (much / 1e6 / seconds, many / seconds) if seconds else (None, None)
    return *rates, *(per_cent(programs.written(one, "bytes"), 2) for one in (total, short))


def counted(book, cell, variant):
    """The counters of a variant, medians over the rounds."""
    data = book.data[(book.data.plan == "seed000-npb") & (book.data.bench == "counters")]
    for column, value in zip(("variant", "op", "network", "ranks"), (variant, *cell)):
        data = data[data[column] == value]
    return data.groupby("metric")["median"].median().to_dict()


def thesis(book):
    """Tables 2.2 and 3.1 and Figure 4.12 of the thesis."""
    found, paper = programs.cells(book, "seed001-nas"), seed("001")["nas"]
    gains, both = (
        [
            (title(cell), NETWORK[cell[2]], cell[3], of[one], of[other])
            for cell, of in found.items()
            if one in of and other in of
        ]
        for one, other in ((OURS, WITHOUT), (OURS, UDP))
    )
    if not gains and not both:
        return ""
    # HPL tells a rate
    rows = [
        (name, f"{udp} {unit}", f"{tcp} {unit}", tcp / udp if unit == "s" else udp / tcp)
        for name, udp, tcp, unit in paper["udp"]["rows"]
    ]
    return (
        show("001", "nas", source=paper["source"], words=paper["words"])
        + normalised(book, gains, paper["gains"])
        + compared("nas-event-thread", gains)
        + show("001", "nas-tables", rows, source=paper["udp"]["source"])
        + compared("nas-udp", both)
        + messages(book, paper["messages"])
    )


def title(cell):
    """As the papers call it."""
    return f"{cell[0].upper()} class {cell[1]}"


def normalised(book, pairs, paper):
    """Figure 4.12 as bars: of every program the thesis' bars that its text tells, and today's."""
    groups = {}
    names = [one["program"] for one in paper] + [pair[0].split()[0] for pair in pairs]
    for name in dict.fromkeys(names):
        for one in (one for one in paper if one["program"] == name):
            groups[f"{name}\n{one['what']}"] = {THESIS: reach(one["ratio"])}
        for which, net, ranks, one, other in (pair for pair in pairs if pair[0].split()[0] == name):
            if one.counts and other.counts:
                where = "" if net == NETWORK["gigabit"] else f" {net}"
                group = f"{name}\n{which.split()[-1]}, {ranks}{where}"
                groups[group] = {OURS: measured(trust.against(one.measured, other.measured))}
    if not any(OURS in of for of in groups.values()):
        return show("001", "nas-nothing")
    title = "NAS programs with an event thread over without"
    return show("001", "nas-bars") + "".join(
        book.picture(
            f"nas-event-thread-{part}",
            plots.bars(some, "time with : without", title, floor(groups), None, one=True),
            "Time of NAS programs with the event thread over the time without, "
            "the thesis' and today's",
        )
        for part, some in enumerate(rows_of(groups, 12))
    )


def reach(ratio):
    """A bar of the thesis, or a line where its text gives a range."""
    if isinstance(ratio, float):
        return ratio
    return trust.Measured(float("nan"), dict(enumerate(ratio)))


def rows_of(groups, most):
    """Rows of at most this many groups, which are about equally full."""
    names, count = list(groups), -(-len(groups) // most)
    each = -(-len(names) // count)
    return [
        {name: groups[name] for name in names[i : i + each]} for i in range(0, len(names), each)
    ]


def floor(groups):
    """Where the axis of bars about 1 begins."""
    least = min(one.span[0] for of in groups.values() for who, one in of.items() if who == OURS)
    return max(0.0, min(0.8, least - 0.05))


def messages(book, paper):
    """Table 2.2: what the programs send."""
    rows = [(name, ranks, THESIS, *sizes) for name, ranks, *sizes in paper["rows"]]
    ops = {name.split()[0].lower() for name, *_ in rows}
    data = book.data[(book.data.bench == "counters") & book.data.op.isin(list(ops))]
    for (op, mode, ranks, net), some in data.groupby(
        ["op", "mode", "ranks", "network"], sort=False
    ):
        some = some[some.variant == some.variant.iloc[0]]
        total = some.groupby("metric")["median"].median().to_dict()
        many, much = (programs.sent(total, what) for what in ("sent", "bytes"))
        what = title((op, mode)), ranks, f"today, {NETWORK[net]}"
        rows.append((*what, int(many), much / 1e6, None))
    missing = len(rows) == len(paper["rows"])
    return show(
        "001",
        "nas-messages",
        sorted(rows, key=lambda row: row[0].split()[0]),
        source=paper["source"],
        words=paper["words"],
        missing=" Nothing was counted today: plan `seed000-npb` does." if missing else "",
        count=len(rows),
    )


def compared(name, pairs):
    """A row a pair of figures, with the ratio of what counts, and the mean of the changes."""
    rows, ratios = [], []
    for *cell, one, other in pairs:
        ratio = trust.against(one.measured, other.measured) if one.counts and other.counts else None
        seconds = [of.words(of.seconds) for of in (one, other)]
        shown = Ratio(ratio.ratio, grey=ratio.grey) if ratio else None
        rows.append((*cell, *seconds, shown, programs.span(ratio)))
        ratios += [ratio] if ratio and not ratio.grey else []
    return show("001", name, rows) + paragraph(mean_of(ratios), note=True)


def mean_of(ratios):
    """The mean of the changes, of all rounds and of each, in a sentence."""
    if not ratios:
        return "No pair counts."
    mean = lambda values: sum(values) / len(values)
    rounds = [mean(each) for each in zip(*(one.rounds for one in ratios))]
    span = f" ({change(min(rounds))} to {change(max(rounds))} in the rounds)"
    words = f"Mean of {len(ratios)}: {change(mean([one.ratio for one in ratios]))}"
    return f"{words}{span if len(rounds) > 1 else ''}."
