"""Plans: what to measure, as small TOML files.

    title = "Latency and bandwidth"
    rounds = 3                       # every library once in each round
    limit = 60                       # seconds a run may take
    minutes = 2                      # that a round takes on two cores, about, for `kwlab plans`
    libraries = ["kittiwake", "mpich", "openmpi", "impi"]

    [[work]]
    program = "p2p"                  # bench/p2p.c
    args = ["--sizes", "8,1024"]     # @random among sizes stands for twenty drawn once for all
                                     # (RANDOM); the list is then in order
    ranks = [2]                      # a run for each ...
    network = ["shm", "tcp"]         # ... and each: shm, tcp, or a host of the host lab for each
                                     # rank: gigabit (1 Gb/s between them), links (two links of
                                     # 1 Gb/s), hosts (no limit);
                                     # cluster: the real hosts of `kwlab run --hosts`
    only = ["kittiwake"]             # some of the plan's libraries (all when left out)
    grow = true                      # also on 32, 64, ... ranks up to the processors of this
                                     # machine, and on as many as there are
    algorithms = true                # of coll alone: every algorithm of every collective too, each
                                     # forced, as variants; a run for each collective, so that all
                                     # its algorithms and libraries take turns (`tune`)
    [work.variants]                  # further runs of Kittiwake alone, with settings set
    nsr = { KW_WRITE = "no" }

    [[timeline]]                     # a traced run of Kittiwake, once and apart from the rounds,
                                     # whose time line the report shows
    program = "give"
    args = ["--sizes", "80000"]
    ranks = 12
    network = "gigabit"
    words = "What it shows."
    phases = { "a broadcast" = 11 }  # a picture for each, by the level that the program gives
                                     # MPI_Pcontrol

    [[library]]                      # a library that is none of those that the lab knows by itself
    name = "mvapich"                 # what libraries, only and run call it
    launcher = "mpiexec.mvapich -n {ranks}"  # in PATH, or with a slash beside the plan
    env = { MVP_DEBUG_SHOW = "0" }   # what launcher and ranks find in their environment
    shm = ["MVP_USE_SHARED_MEM=1"]   # what makes it use that network: NAME=VALUE, or options of
    tcp = ["FI_PROVIDER=tcp"]        # the launcher, behind its name; also lab, added to tcp in
                                     # the host lab, and cluster, in which {hosts} may stand
    mpicc = "/opt/mvapich/bin/mpicc" # and mpifort: for what has to be built

Whole programs stand in tables [[application]]: see `applications`.

With `profile = true` a plan also describes the machine and has it measured by the library's own
calibration, and what it has measured becomes one file for others (`machine`).

A field that is unknown, missing or of the wrong kind is refused with its name. docs/lab.md lists
all fields."""

import difflib
import random
import re
import shutil
import tomllib
from dataclasses import dataclass, field, replace
from pathlib import Path

from . import applications
from .libraries import CLUSTER, JAVA, OURS, PACKAGES, RATES, ROOT, PlanLibrary
from .timelines import Timeline

SHIPPED = Path(__file__).parent / "plans"
NETWORKS = ("shm", "tcp", *RATES, CLUSTER)
KNOWN = (OURS, *PACKAGES)
NAMED = (*KNOWN, JAVA)  # with those that take part only where a plan names them
COLLECTIVES = "coll"  # the program that measures collectives
MOST_RANKS = 1024
MOST_HOSTS = 250
FIRST = ("quick", "cluster", "grid")  # of the plans in a list


def random_sizes():
    """Twenty random sizes, multiples of 8 and no powers of two, one in each twentieth of the
    logarithms from 16 bytes to 1 MB: models that were fitted to other sizes are judged by them."""
    drawn = random.Random(20)
    sizes = [int(2 ** (4 + 16 * (step + drawn.random()) / 20)) // 8 * 8 for step in range(20)]
    return tuple(size + 8 if size & (size - 1) == 0 else size for size in sizes)


RANDOM = random_sizes()


class PlanError(Exception):
    """A plan that cannot be read; the message names file and field."""


@dataclass(frozen=True)
class Work:
    """One program with its arguments, and where it runs."""

    program: str
    args: tuple = ()
    ranks: tuple = (2,)
    network: tuple = ("shm",)
    variants: dict = field(default_factory=dict)
    only: tuple = ()
    application: applications.Application = None
    grow: bool = False
    algorithms: bool = False
    asked: bool = False  # the ranks are asked by which algorithms they run it (`Runner.chosen`)

    def on(self, library):
        """Does it run on this library?"""
        return (not self.only or library in self.only) and (
            not self.application or self.application.on(library)
        )


@dataclass(frozen=True)
class Plan:
    """What to measure."""

    name: str
    title: str
    work: tuple
    libraries: tuple = KNOWN
    rounds: int = 3
    limit: float = 60.0
    about: str = ""
    minutes: float = 0.0
    profile: bool = False
    timelines: tuple = ()
    own: tuple = ()  # libraries that it describes (`libraries.PlanLibrary`)

    def brief(self):
        """The title, and of what it is about the first sentence."""
        return ". ".join(filter(None, [self.title, re.split(r"(?<=[.!?])\s", self.about)[0]]))


@dataclass(frozen=True)
class Cell:
    """One run, but for the round: what makes it different from the others of its plan."""

    library: str
    program: str
    args: tuple
    ranks: int
    network: str
    variant: str = ""
    settings: tuple = ()
    application: applications.Application = field(default=None, compare=False)
    asked: bool = field(default=False, compare=False)

    def key(self):
        """The cell as text."""
        settings = ",".join(f"{name}={value}" for name, value in self.settings)
        return "|".join(
            [
                self.library,
                self.program,
                " ".join(self.args),
                str(self.ranks),
                self.network,
                self.variant,
                settings,
            ]
        )

    def label(self):
        """The cell for people; long lists of sizes are cut."""
        variant = f" ({self.variant})" if self.variant else ""
        words = [
            word if len(word) <= 24 else f"{word[:23]}…" for word in (self.program, *self.args)
        ]
        return f"{self.library}{variant}: {' '.join(words)}, {self.ranks} ranks, {self.network}"


# field -> (kind, its name for people, of what if it is a list)
PLAN_FIELDS = {
    "title": (str, "text", None),
    "about": (str, "text", None),
    "rounds": (int, "a whole number", None),
    "limit": ((int, float), "seconds", None),
    "minutes": ((int, float), "minutes", None),
    "libraries": (list, "a list of libraries", str),
    "work": (list, "tables [[work]]", dict),
    "application": (list, "tables [[application]]", dict),
    "timeline": (list, "tables [[timeline]]", dict),
    "library": (list, "tables [[library]]", dict),
    "profile": (bool, "true or false", None),
    "run": (dict, "a table of commands", None),
    "read": (dict, "a table of regular expressions", None),
}
WORK_FIELDS = {
    "program": (str, "the name of a program of bench/", None),
    "args": (list, "a list of words", str),
    "ranks": (list, "a list of whole numbers", int),
    "network": (list, "a list of " + ", ".join(NETWORKS), str),
    "variants": (dict, "a table of tables of settings", None),
    "only": (list, "a list of libraries", str),
    "grow": (bool, "true or false", None),
    "algorithms": (bool, "true or false", None),
}
TIMELINE_FIELDS = {
    "program": WORK_FIELDS["program"],
    "args": WORK_FIELDS["args"],
    "ranks": (int, "a whole number", None),
    "network": (str, "one of " + ", ".join(NETWORKS), None),
    "words": (str, "text", None),
    "phases": (dict, "a table of whole numbers", None),
}
ON_NETWORK = ("shm", "tcp", "lab", "cluster")  # what makes a library use it
LIBRARY_FIELDS = {
    "name": (str, "a name", None),
    "launcher": (str, "a command with {ranks} in it", None),
    "env": (dict, "a table of texts", None),
    **dict.fromkeys(ON_NETWORK, (list, "a list of words", str)),
    **dict.fromkeys(("mpicc", "mpifort"), (str, "a program", None)),
}
APPLICATION_FIELDS = {
    "name": (str, "a name", None),
    "build": (str, "a directory of apps/", None),
    "run": PLAN_FIELDS["run"],
    "read": PLAN_FIELDS["read"],
    **{name: how for name, how in WORK_FIELDS.items() if name not in ("program", "algorithms")},
}


def checked(where, table, fields, needed):
    """The table's fields, lists as tuples."""
    found = {}
    for name, value in table.items():
        if name not in fields:
            raise PlanError(f"{where}: there is no field '{name}'; there are {', '.join(fields)}")
        kind, people, of = fields[name]
        if (
            not isinstance(value, kind)
            or isinstance(value, bool)
            and kind is not bool
            or of
            and not all(isinstance(v, of) and not isinstance(v, bool) for v in value)
        ):
            raise PlanError(f"{where}: '{name}' is {value!r}, but it takes {people}")
        found[name] = tuple(value) if isinstance(value, list) else value
    for name in needed:
        if name not in found:
            raise PlanError(f"{where}: the field '{name}' is missing")
    return found


def parse(text, name, place=Path(), where=""):
    """A plan from its text; `place` is where its programs are looked for, `where` what errors call
    it."""
    where = where or name
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise PlanError(f"{where}: {error}") from None
    top = checked(
        where, table, PLAN_FIELDS, ["title"] if "application" in table else ["title", "work"]
    )
    defaults = {field: top.pop(field, {}) for field in ("run", "read")}
    own = tuple(
        parse_library(f"{where}: library {i + 1}", one, place)
        for i, one in enumerate(top.pop("library", ()))
    )
    among = (*NAMED, *(library.name for library in own))
    if twice := next((name for name in among if among.count(name) > 1), ""):
        raise PlanError(f"{where}: two libraries have the 'name' {twice!r}")
    usual = tuple(name for name in among if name != JAVA)
    for library in top.setdefault("libraries", usual):
        known(where, "libraries", library, among)
    within(where, "rounds", top.get("rounds", 1), 1, 1000)
    within(where, "limit", top.get("limit", 1), 1, 86400)
    within(where, "minutes", top.get("minutes", 0), 0, 100000)
    works = [
        parse_work(f"{where}: work {i + 1}", work, among)
        for i, work in enumerate(top.get("work", ()))
    ]
    works += [
        parse_application(f"{where}: application {i + 1}", one, defaults, place, among)
        for i, one in enumerate(top.pop("application", ()))
    ]
    top["work"] = tuple(works)
    top["timelines"] = tuple(
        parse_timeline(f"{where}: timeline {i + 1}", one)
        for i, one in enumerate(top.pop("timeline", ()))
    )
    return Plan(name=name, own=own, **top)


def parse_library(where, table, place):
    """One table [[library]]."""
    fields = checked(where, table, LIBRARY_FIELDS, ["name", "launcher"])
    name = said(where, "name", own_name, fields["name"])
    first, *start = said(where, "launcher", launching, fields["launcher"])
    if not all(isinstance(value, str) for value in fields.get("env", {}).values()):
        raise PlanError(f"{where}: 'env' is {fields['env']!r}, but it takes a table of texts")
    mpicc, mpifort = (
        fields.get(field) and program_at(fields[field], place) for field in ("mpicc", "mpifort")
    )
    how = {field: fields[field] for field in ("env", *ON_NETWORK) if field in fields}
    return PlanLibrary(name, [program_at(first, place), *start], mpicc, fortran=mpifort, **how)


def own_name(name):
    """A name that tells a library from the four; raises ValueError. What begins with
    `kittiwake` is a variant of Kittiwake wherever figures are compared."""
    if not re.fullmatch(r"[\w.+-]+", name):
        raise ValueError("takes letters, digits and . + - _")
    if name.startswith(OURS) or name in NAMED:
        raise ValueError("takes the name of a library that the lab does not know by itself")
    return name


def launching(text):
    """The words of a launcher; raises ValueError."""
    words = applications.command(text)
    if not any("{ranks}" in word for word in words[1:]):
        raise ValueError("takes a command with {ranks} in it")
    return words


def program_at(name, place):
    """Where a program is: with a slash in its name seen from `place`, else in PATH."""
    return place / name if "/" in name else Path(shutil.which(name) or name)


def parse_work(where, table, among=NAMED):
    """One table [[work]]."""
    fields = checked(where, table, WORK_FIELDS, ["program"])
    known(where, "program", fields["program"], programs())
    if fields.get("algorithms") and (fields["program"] != COLLECTIVES or fields.get("variants")):
        raise PlanError(
            f"{where}: 'algorithms' goes with the program {COLLECTIVES} and no variants"
        )
    check_cells(where, fields, among)
    return Work(**fields)


def parse_timeline(where, table):
    """One table [[timeline]]."""
    fields = checked(where, table, TIMELINE_FIELDS, ["program", "phases"])
    known(where, "program", fields["program"], programs())
    check_cells(where, {name: (fields[name],) for name in ("ranks", "network") if name in fields})
    for name, level in fields["phases"].items():
        if not isinstance(level, int) or isinstance(level, bool) or not name:
            raise PlanError(f"{where}: 'phases.{name}' is {level!r}, but it takes a whole number")
    return Timeline(**{**fields, "phases": tuple(fields["phases"].items())})


def parse_application(where, table, defaults, place, among):
    """One table [[application]]; `defaults` is what the plan says for all that are not built,
    `among` the libraries that there are."""
    fields = checked(
        where, table if "build" in table else {**defaults, **table}, APPLICATION_FIELDS, ["name"]
    )
    if "build" in fields and "run" in fields:
        raise PlanError(
            f"{where}: it has both 'build' and 'run', but a program is built by the lab or started "
            "by the plan's command; leave one of them out"
        )
    name, build, run, read = (fields.pop(field, "") for field in ("name", "build", "run", "read"))
    check_cells(where, fields, among)
    if build:
        known(where, "build", build, applications.built())
        known(where, "name", name, applications.kernels(build))
        reading, run = parse_reading(where, read) if read else applications.OURS_READ, {}
    else:
        if not run:
            raise PlanError(f"{where}: the field 'run' is missing")
        run = {
            library: said(where, f"run.{library}", applications.command, words)
            for library, words in run.items()
        }
        reading = parse_reading(where, read or {})
    for library in run:
        known(where, "run", library, among)
    return Work(
        program=name,
        application=applications.Application(name, reading, run, build, place),
        **fields,
    )


def parse_reading(where, table):
    """The table `read`."""
    fields = checked(
        f"{where}: read",
        table,
        {name: (str, "a regular expression", None) for name in ("seconds", "rate", "verified")},
        ["seconds"],
    )
    return applications.Reading(
        **{
            name: said(
                where,
                f"read.{name}",
                lambda text: applications.pattern(text, name != "verified"),
                text,
            )
            for name, text in fields.items()
        }
    )


def said(where, name, make, value):
    """What is made of a field's value."""
    try:
        return make(value)
    except ValueError as why:
        raise PlanError(f"{where}: '{name}' is {value!r}, but it {why}") from None


def check_cells(where, fields, among=NAMED):
    """What [[work]] and [[application]] have in common."""
    for network in fields.get("network", ()):
        known(where, "network", network, NETWORKS)
    for library in fields.get("only", ()):
        known(where, "only", library, among)
    for ranks in fields.get("ranks", ()):
        within(
            where,
            "ranks",
            ranks,
            1,
            MOST_HOSTS if RATES.keys() & fields.get("network", ()) else MOST_RANKS,
        )
    for name, settings in fields.get("variants", {}).items():
        if not isinstance(settings, dict) or not all(isinstance(v, str) for v in settings.values()):
            raise PlanError(
                f"{where}: 'variants.{name}' is {settings!r}, "
                "but it takes a table of settings with text values"
            )
    fields["args"] = tuple(with_random(where, word) for word in fields.get("args", ()))


def with_random(where, word):
    """A list of sizes with @random in it as all its sizes in order, so that neighbours in size are
    neighbours in time; other words as they are."""
    sizes = word.split(",")
    if "@random" not in sizes:
        return word
    try:
        return ",".join(
            map(str, sorted([*RANDOM, *(int(size) for size in sizes if size != "@random")]))
        )
    except ValueError:
        raise PlanError(f"{where}: 'args' has {word!r}, but @random stands among sizes") from None


def programs():
    """The programs of bench/."""
    return sorted(path.stem for path in (ROOT / "bench").glob("*.c"))


def within(where, name, value, least, most):
    if not least <= value <= most:
        raise PlanError(f"{where}: '{name}' has {value}, but it goes from {least} to {most}")


def known(where, name, value, among):
    if value not in among:
        raise PlanError(f"{where}: '{name}' has {value!r}, but there are {', '.join(among)}")


def load(name):
    """A plan by the name of a shipped one or by its file."""
    path = SHIPPED / f"{name}.toml" if name in names() else Path(name)
    try:
        text = path.read_text()
    except OSError as error:
        like = difflib.get_close_matches(name, names(), n=2)
        meant = f"did you mean {' or '.join(like)}? " if like else ""
        raise PlanError(
            f"{name}: neither a plan that comes with the lab ({meant}`kwlab plans` lists them) "
            f"nor a file ({error.strerror})"
        ) from None
    except UnicodeDecodeError:
        raise PlanError(f"{name}: no text in UTF-8") from None
    return parse(text, path.stem, path.parent.resolve(), str(name))


def names():
    """The plans that come with the lab: what to begin with, then the library's questions, then the
    papers'."""
    order = lambda name: (
        FIRST.index(name) if name in FIRST else len(FIRST),
        name.startswith("seed"),
        name,
    )
    return sorted((p.stem for p in SHIPPED.glob("*.toml")), key=order)


def on_cluster(plan):
    """The same plan on real hosts: what it does over a network goes over theirs."""
    there = lambda net: net if net == "shm" else CLUSTER
    return replace(
        plan,
        work=tuple(
            replace(work, network=tuple(dict.fromkeys(map(there, work.network))))
            for work in plan.work
        ),
        timelines=tuple(replace(one, network=there(one.network)) for one in plan.timelines),
    )


def grown(plan, processors):
    """The same plan, in which the parts that grow have their ranks for a machine with this many
    processors."""
    return replace(
        plan,
        work=tuple(
            replace(work, ranks=ranks_to(work.ranks, processors)) if work.grow else work
            for work in plan.work
        ),
    )


def ranks_to(ranks, processors):
    """Those, their doubles up to the processors, and as many as there are processors."""
    found, most = list(ranks), min(processors, MOST_RANKS)
    while 2 * max(found) <= most:
        found.append(2 * max(found))
    return tuple(sorted({*found, *([most] if most > max(found) else [])}))


def cells(plan):
    """All cells of a plan; libraries change fastest, so that neighbours in time can be compared."""
    found = {}
    for work in plan.work:
        libraries = [library for library in plan.libraries if work.on(library)]
        variants = work.variants.items() if OURS in libraries else ()
        for network in work.network:
            for ranks in work.ranks:
                place = (work.program, work.args, ranks, network)
                some = [
                    Cell(
                        library,
                        *place,
                        application=work.application,
                        asked=work.asked and library == OURS,
                    )
                    for library in libraries
                ]
                some += [
                    Cell(OURS, *place, name, tuple(sorted(settings.items())), work.application)
                    for name, settings in variants
                ]
                found.update((cell.key(), cell) for cell in some)
    return list(found.values())
