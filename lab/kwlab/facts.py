"""What is known of the machine that measures: kept with every run (`machine`), and the longer
description that is sent to others (`described`), which names neither the host nor an address. As a
program it prints that as JSON, so that a launcher can ask other hosts; it wants nothing but
Python."""

import json
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


def described():
    """A host for others, by name: what it is made of, and nothing by which it or its owner could be
    found."""
    cpus = [
        one
        for place in Path("/sys/devices/system/cpu").glob("cpu[0-9]*")
        if (one := place / "topology").is_dir()
    ]
    packages = {text(cpu / "physical_package_id") for cpu in cpus}
    cores = {(text(cpu / "physical_package_id"), text(cpu / "core_id")) for cpu in cpus}
    known = machine()
    return {
        "processor": known["processor"],
        "processors": len(cpus) or os.cpu_count(),
        "usable processors": known["cores"],
        "sockets": len(packages) or 1,
        "cores": len(cores) or len(cpus),
        "caches": caches(),
        "NUMA nodes": len(list(Path("/sys/devices/system/node").glob("node[0-9]*"))) or 1,
        "memory": memory(known["memory"]),
        "kernel": f"{known['system']} {known['kernel']}",
        "governor": known["governor"],
        "huge pages": chosen(text("/sys/kernel/mm/transparent_hugepage/enabled")),
        "virtual": known["virtual"],
        "ptrace_scope": known["ptrace_scope"],
        "networks": networks(),
    }


def caches():
    """Of the first processor: level, kind, size, and how many processors share one."""
    found = []
    for place in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index[0-9]*")):
        sharing = counted(text(place / "shared_cpu_list"))
        found.append(
            f"L{text(place / 'level')} {text(place / 'type').lower()} {text(place / 'size')} for "
            f"{sharing}"
        )
    return ", ".join(found) or "unknown"


def domains():
    """How many last-level caches, or packages, the usable processors have."""
    found = set()
    for cpu in os.sched_getaffinity(0):
        place = Path(f"/sys/devices/system/cpu/cpu{cpu}")
        last = max(place.glob("cache/index[0-9]*"), default=place)
        found.add((text(place / "topology/physical_package_id"), text(last / "shared_cpu_list")))
    return len(found)


def counted(ranges):
    """How many numbers `0-3,8` has."""
    try:
        return sum(
            int(last or first) - int(first) + 1
            for first, _, last in (part.partition("-") for part in ranges.split(","))
        )
    except ValueError:
        return 1


def chosen(words):
    """The word in brackets, where the kernel lists what could be chosen."""
    return next((word.strip("[]") for word in words.split() if word.startswith("[")), words)


def networks(root=Path("/sys/class/net")):
    """Interfaces of devices that are up, by driver and speed alone: names may have hardware
    addresses in them."""
    found = []
    for place in sorted(root.glob("*")):
        driver = place / "device/driver"
        if not driver.exists() or text(place / "operstate") == "down":
            continue
        speed = text(place / "speed")
        rate = (
            f"{int(speed) / 1000:g} Gb/s"
            if speed.lstrip("-").isdigit() and int(speed) > 0
            else "speed unknown"
        )
        found.append(f"{driver.resolve().name}, {rate}, MTU {text(place / 'mtu')}")
    return "; ".join(found) or "none but loopback"


def sentence(facts):
    """The facts in one line."""
    virtual = ", virtual" if facts.get("virtual") == "yes" else ""
    return (
        f"{facts['processor']}, {facts['cores']} cores, {memory(facts['memory'])}, "
        f"{facts['system']} {facts['kernel']}{virtual}"
    )


def memory(text):
    """As the kernel says it, in GB."""
    amount, _, unit = text.partition(" ")
    return f"{int(amount) / (1 << 20):.1f} GB" if unit == "kB" else text


if __name__ == "__main__":
    print(json.dumps(described()))
