"""Run every benchmark, or those named: ``python -m benchmarks [exact] [factors] [memory]``."""

import sys

from benchmarks import exact, factors, memory

BENCHMARKS = {"exact": exact.main, "factors": factors.main, "memory": memory.main}

if __name__ == "__main__":
    unknown = set(sys.argv[1:]) - set(BENCHMARKS)
    if unknown:
        sys.exit(f"no benchmark {', '.join(unknown)}; there are {', '.join(BENCHMARKS)}")
    for name in sys.argv[1:] or BENCHMARKS:
        BENCHMARKS[name]()
