"""The laboratory: runs the same work on any MPI library, keeps every measurement, fits models, and
shows the result.

| module | what |
| --- | --- |
| `cli` | the command `kwlab` |
| `plan` | what to measure: small TOML files |
| `applications` | whole programs of a plan: what to start, and how to read what they print |
| `libraries`, `java` | the MPI libraries: how to compile for each and run on it; ours from Java |
| `runner` | carries a plan out, resumably |
| `trust` | what may be believed of a figure |
| `store`, `export` | the dataset: one SQLite file, and the same for other programs |
| `facts` | what is known of the machine |
| `models` | cost models and their accuracy |
| `substitute` | where two collectives in a row beat one |
| `compare` | two libraries, interleaved; a ratio with its confidence |
| `report`, `html`, `plots` | one HTML page, its pieces and its pictures |
| `sections`, `fitted`, `programs` | what stands in it: ratios and so on, models, applications |
| `papers`, `nas`, `pstswm`, `grande` | the papers' tables in it (their figures are in `seeds/`) |
| `timelines` | traced runs of a plan, for it |
| `page` | docs/benchmarks.md |
| `regret`, `tune` | the chosen collective algorithm beside all, and rows for the selection table |
| `machine`, `machines`, `check` | a machine as a file for others, drawn, and judged by |
| `attack` | what strangers at the ports cost |
| `words` | how sizes, networks and shares are written |
| `analysis` | questions to the dataset |
"""

VERSION = "0.1.0"
