"""What the report tells, in this order: the machine, how to read, ratios first, then models,
pictures by size, the papers' tables beside today's, absolute times, and what went wrong. Each
section takes the book and gives HTML, or nothing where nothing was measured."""

from .. import fitted, grande, nas, papers, programs, pstswm, timelines
from .about import failed, machine, reading
from .cells import absolute, behind, connections, heat_maps, modes, ratio_tables, streams, which
from .chosen import regret_table, regrets, worst_table
from .measured import forms, layouts, others, overlap, rates, start, tails

SECTIONS = [
    ("machine", "Machine", machine),
    ("reading", "How to read this", reading),
    ("ratios", "Ratios", ratio_tables),
    ("applications", "Whole programs", programs.section),
    ("behind", "Where a peer is ahead", behind),
    ("heat", "Collectives at a glance", heat_maps),
    ("regret", "Regret: what is chosen beside every algorithm", regrets),
    ("which", "Which library is quickest", which),
    ("messages", "Latency and bandwidth", fitted.messages),
    ("fits", "Collectives and their models", fitted.collectives),
    ("models", "Models", fitted.models_section),
    ("forms", "Blocking, non-blocking, persistent", forms),
    ("tails", "How long the slow ones take", tails),
    ("rates", "Several pairs and threads at once", rates),
    ("layouts", "Datatypes", layouts),
    ("overlap", "Overlap", overlap),
    ("waiting", "Waiting after computing", papers.waiting),
    ("receives", "Expected and unexpected receives", papers.receives),
    ("events", "With and without an event thread", papers.events),
    ("udp", "UDP beside TCP", papers.udp),
    ("mbcf", "MPI/MBCF, Table 1", papers.mbcf),
    ("npb", "MPI/MBCF, Tables 2 to 9: NAS kernels", nas.mbcf),
    ("nas", "NAS kernels with and without an event thread", nas.thesis),
    ("grande", "Java Grande kernels: speed-ups", grande.section),
    ("pstswm", "PSTSWM: protocols, what lies below MPI, collectives", pstswm.section),
    ("give", "Broadcast or a loop of sends", papers.giving),
    ("timelines", "Time lines", timelines.section),
    ("modes", "Send modes", modes),
    ("start", "Start-up, memory, waiting", start),
    ("connections", "Latency with other peers connected", connections),
    ("streams", "Between hosts", streams),
    ("others", "Other programs", others),
    ("absolute", "Absolute times", absolute),
    ("failed", "What went wrong", failed),
]
