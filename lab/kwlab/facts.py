"""What is known of the machine that measures: kept with every run."""
import os
import platform
from pathlib import Path


def first(path, start):
    """What follows `start:` on the first such line of a file of the kernel."""
    try:
        for line in Path(path).read_text().splitlines():
            if line.startswith(start):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return "unknown"


def text(path):
    try:
        return Path(path).read_text().strip()
    except OSError:
        return "unknown"


def machine():
    """Facts by name."""
    return {
        "processor": first("/proc/cpuinfo", "model name"),
        "cores": len(os.sched_getaffinity(0)),
        "memory": first("/proc/meminfo", "MemTotal"),
        "kernel": platform.release(),
        "system": platform.system(),
        "governor": text("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        "ptrace_scope": text("/proc/sys/kernel/yama/ptrace_scope"),
        "virtual": "yes" if "hypervisor" in first("/proc/cpuinfo", "flags").split() else "no",
    }


def sentence(facts):
    """The facts in one line."""
    virtual = ", virtual" if facts.get("virtual") == "yes" else ""
    return f"{facts['processor']}, {facts['cores']} cores, {memory(facts['memory'])}, {facts['system']} {facts['kernel']}{virtual}"


def memory(text):
    """As the kernel says it, in GB."""
    amount, _, unit = text.partition(" ")
    return f"{int(amount) / (1 << 20):.1f} GB" if unit == "kB" else text
