"""Packages that together take three seconds of processor to load, for commands that may not need
them: each is loaded when something of it is first used."""

import importlib


class Package:
    """Stands for the package or module of this name."""

    def __init__(self, name):
        self._name = name

    def __getattr__(self, name):
        return getattr(importlib.import_module(self._name), name)


numpy = Package("numpy")
pandas = Package("pandas")
mstats = Package("scipy.stats.mstats")
optimize = Package("scipy.optimize")
plt = Package("matplotlib.pyplot")
colors = Package("matplotlib.colors")
