"""Run every benchmark, or those named: ``python -m benchmarks [exact] [nystrom] …``."""

import sys

from benchmarks import (
    advise,
    auto,
    cluster,
    dynamics,
    exact,
    factors,
    features,
    files,
    large,
    lifelong,
    memory,
    nystrom,
    rare_classes,
    service,
    sgm,
    tables,
)

BENCHMARKS = {
    "exact": exact.main,
    "nystrom": nystrom.main,
    "large": large.main,
    "auto": auto.main,
    "cluster": cluster.main,
    "tables": tables.main,
    "features": features.main,
    "sgm": sgm.main,
    "advise": advise.main,
    "factors": factors.main,
    "lifelong": lifelong.main,
    "dynamics": dynamics.main,
    "service": service.main,
    "memory": memory.main,
    "files": files.main,
}

# Figures of the documentation, drawn when they are named.
FIGURES = {
    "sgm-figure": sgm.regularization,
    "lifelong-figure": rare_classes.figure,
    "dynamics-figure": dynamics.figure,
}

if __name__ == "__main__":
    known = BENCHMARKS | FIGURES
    unknown = set(sys.argv[1:]) - set(known)
    if unknown:
        sys.exit(f"no benchmark {', '.join(unknown)}; there are {', '.join(known)}")
    for name in sys.argv[1:] or BENCHMARKS:
        known[name]()
