"""The laboratory: runs the same work on any MPI library, keeps every measurement, fits models, and shows the result.

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
| `report`, `sections`, `html`, `plots` | one HTML page, what stands in it, and its pictures |
| `analysis` | questions to the dataset |
"""
