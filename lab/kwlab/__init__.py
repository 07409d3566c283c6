"""The laboratory: runs the same work on any MPI library, keeps every measurement, fits models, and
shows the result.

| module | what |
| --- | --- |
| `cli` | the command `kwlab` |
| `plan` | what to measure: small TOML files |
| `libraries` | the MPI libraries: how to compile for each and run on it |
| `runner` | carries a plan out, resumably |
| `store` | the dataset: one SQLite file |
| `facts` | what is known of the machine |
| `models` | cost models and their accuracy |
| `substitute` | where two collectives in a row beat one |
| `compare` | two libraries, interleaved; a ratio with its confidence |
| `report`, `html`, `plots` | one HTML page, its pieces and its pictures |
| `sections`, `fitted`, `papers` | what stands in it: ratios and the rest, models, the papers' tables (their figures are in `seeds/`) |
| `words` | how sizes, networks and shares are written |
| `analysis` | questions to the dataset |
"""
VERSION = "0.1.0"
