"""Reads a trace: as much of Perfetto's format as mpiexec --trace writes."""

import struct


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at


def fields(data):
    """(number, value) of a message: an int, or bytes; one that is cut off ends it."""
    at = 0
    while at < len(data):
        try:
            key, at = varint(data, at)
            kind = key & 7
            if kind == 0:
                value, at = varint(data, at)
            elif kind == 1:
                value, at = struct.unpack_from("<Q", data, at)[0], at + 8
            else:
                assert kind == 2, f"wire type {kind}"
                size, at = varint(data, at)
                if at + size > len(data):
                    return
                value, at = data[at : at + size], at + size
        except (IndexError, struct.error):
            return
        yield key >> 3, value


def one(data):
    return dict(fields(data))


def signed(value):
    return value - (1 << 64) if value >> 63 else value


class Sequence:
    """What a sequence has interned."""

    def __init__(self):
        self.names = {}

    def learn(self, data):
        for table, entry in fields(data):
            entry = one(entry)
            self.names[table, entry[1]] = entry[2].decode()

    def arguments(self, event):
        found = {}
        for number, data in fields(event):
            if number != 4:
                continue
            a = one(data)
            name = a[10].decode() if 10 in a else self.names[3, a[1]]
            (kind,) = set(a) - {1, 10}
            value = {
                3: lambda v: v,
                4: signed,
                6: lambda v: v.decode(),
                17: lambda v: self.names[29, v],
            }[kind](a[kind])
            if name == "member":  # of a group: there are several
                found.setdefault(name, []).append(value)
            else:
                found[name] = value
        return found


SHARED = 4001  # the field for jobs that write to the same file


class Trace:
    """What stands in a file: `processes` {rank: (name, labels)}, `threads` {(rank, index): tid},
    `calls`, `received`, `phases`, `ends`, `library` (what the library said), `neighbours`
    (which ranks a rank receives from in a topology), `counters` {(rank, name): [(time, value)]}."""

    def __init__(self, data):
        self.processes, self.threads = {}, {}
        self.calls = []
        self.received = []
        self.phases = []
        self.ends = []
        self.library = []
        self.neighbours = []
        self.counters, self.names = {}, {}
        self.sequences, self.open, self.packets = {}, {}, 0
        for number, packet in fields(data):
            assert number == 1
            self.packet(packet)
            self.packets += 1

    def packet(self, data):
        p = one(data)
        if SHARED in p:
            return
        if p.get(13) == 1 or p[10] not in self.sequences:
            assert p.get(13) == 1, "the first packet of a sequence says so"
            self.sequences[p[10]] = Sequence()
        names = self.sequences[p[10]]
        if 12 in p:
            names.learn(p[12])
        if 60 in p:
            self.track(one(p[60]))
        if 11 in p:
            self.event(p[8], p[11], names)

    def track(self, t):
        rank = (t[1] >> 16) - 1
        if 3 in t:
            process = list(fields(t[3]))
            self.processes[rank] = (
                dict(process)[6].decode(),
                [v.decode() for n, v in process if n == 8],
            )
        elif 4 in t:
            self.threads[rank, (t[1] & 0xFFFF) - 1] = one(t[4])[2]
        elif 8 in t:
            self.names[t[1]] = rank, t[2].decode()

    def event(self, time, data, names):
        e = one(data)
        track = e[11]
        rank, thread = (track >> 16) - 1, (track & 0xFFFF) - 1
        if e[9] == 2:
            call = self.open[track].pop()
            call["end"] = time
            call["ending"] = names.arguments(data)
            return
        if e[9] == 4:
            self.counters.setdefault(self.names[track], []).append((time, e[30]))
            return
        what = {
            "rank": rank,
            "thread": thread,
            "time": time,
            "name": names.names[2, e[10]],
            **names.arguments(data),
        }
        category = names.names[1, e[3]]
        if e[9] == 1:
            assert category == "mpi"
            what["flows"] = [v for n, v in fields(data) if n == 47]
            self.open.setdefault(track, []).append(what)
            self.calls.append(what)
        elif category == "message":
            what["flows"] = [v for n, v in fields(data) if n == 48]
            self.received.append(what)
        elif category == "user":
            self.phases.append(what)
        elif category == "library":
            self.library.append(what)
        elif category == "topology":
            self.neighbours.append(what)
        elif category == "recorder":
            self.ends.append(what)

    def of(self, rank, name=None):
        return [c for c in self.calls if c["rank"] == rank and name in (None, c["name"])]
