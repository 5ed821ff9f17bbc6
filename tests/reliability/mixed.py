"""Four processes that write at once: ``python -m tests.reliability.mixed`` is the long run, with 200 writes each.

With ``FOLDER LOG LIFE SEED WRITES`` it is one of them, and prints its longest write in milliseconds.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.reliability.kills import ROOT, WRITERS, Figures, compare
from tests.reliability.writing import Life


def run(folder: Path, logs: Path, *, writes: int) -> tuple[Figures, float]:
    """Let four processes write at once; return what was found, and the longest wait in seconds."""
    notes, figures = logs / "notes", Figures()
    logs.mkdir()
    names = [logs / f"writer{number}" for number in range(WRITERS)]
    processes = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.reliability.mixed", str(folder), str(log), "0", str(number), str(writes)],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for number, log in enumerate(names)
    ]
    said = [process.communicate()[0] for process in processes]
    figures.wrong += [
        f"a writer ended with {process.returncode}: {text}"
        for process, text in zip(processes, said, strict=True)
        if process.returncode
    ]
    compare(folder, names, notes, figures, imported=False)
    return figures, max((float(text.split()[-1]) for text in said if text.strip()), default=0.0) / 1000


def main() -> int:
    """Take the long run, or be one of its processes."""
    if len(sys.argv) > 1:
        folder, log, life, seed, writes = sys.argv[1:]
        one = Life(folder, Path(log), int(life), int(seed))
        one.go_on(int(writes))
        one.close()
        print(f"{one.longest * 1000:.0f}")
        return 0
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as place:
        figures, longest = run(Path(place) / "store", Path(place) / "logs", writes=200)
    took = time.monotonic() - started
    print(
        f"{WRITERS} processes: {figures}, the longest took {longest * 1000:.0f} ms, {took:.0f} s",
        *figures.wrong,
        sep="\n",
    )
    return bool(figures.wrong)


if __name__ == "__main__":
    sys.exit(main())
