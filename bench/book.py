"""Writing measured tables into docs/: between markers, with the command, the day and the machine. Also where the tools of this
directory get the libraries from: the laboratory's file of them is the only one."""
import datetime
import os
import platform
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "lab"))
from kwlab import libraries  # noqa: E402, F401

PAGE = ROOT / "docs/benchmarks.md"


def machine():
    """One line about where this runs."""
    model = "unknown processor"
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.split(":", 1)[1].strip()
            break
    return f"{model}, {os.cpu_count()} cores, Linux {platform.release().split('-')[0]}"


def provenance(command=None):
    """The sentence that stands above a table."""
    command = command or " ".join(["bench/" + Path(sys.argv[0]).name, *sys.argv[1:]])
    return f"Made by `{command}` on {datetime.date.today().isoformat()} ({machine()})."


def write(name, text, page=PAGE, tool=None):
    """Puts `text` between the markers of `name`, which say what tool of bench/ it is from (one of the same name, unless `tool` is given); at the
    page's end, with its markers, when there are none yet."""
    begin, end = f"<!-- {name}: begin, written by bench/{tool or name} -->", f"<!-- {name}: end -->"
    old = page.read_text()
    new = f"{begin}\n{text.strip()}\n{end}"
    if begin in old:
        old = old[:old.index(begin)] + new + old[old.index(end) + len(end):]
    else:
        old = f"{old.rstrip()}\n\n{new}\n"
    page.write_text(old)
