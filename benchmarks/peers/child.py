"""Serve one memory to a parent process: a JSON request a line on the standard input, a JSON answer a line back.

Runs by its path in any environment, and imports nothing but the standard library and the one module of ``systems`` that
it is told: ``python child.py MODULE FOLDER``. Vectors come base64-encoded, as 32-bit floats.
"""

import base64
import importlib
import json
import os
import sys
import time
from array import array
from pathlib import Path


def main() -> None:
    """Answer until the input ends. What a library prints goes to the error stream."""
    answers, sys.stdout = sys.stdout, sys.stderr
    sys.path[0] = str(Path(__file__).parent / "systems")
    system = importlib.import_module(sys.argv[1]).open_memory(Path(sys.argv[2]))
    for line in sys.stdin:
        answers.write(json.dumps(_answer(system, json.loads(line))) + "\n")
        answers.flush()


def _answer(system, request):
    if request["do"] == "add":
        for each in request["documents"]:
            each["vector"] = _vector(each["vector"])
            each["passages"] = [(text, _vector(vector)) for text, vector in each["passages"]]
        started = time.perf_counter()
        system.add(request["documents"])
        return {"seconds": time.perf_counter() - started}
    if request["do"] == "search":
        vector = _vector(request["vector"])
        started = time.perf_counter()
        ids = system.search(request["query"], vector, request["project"], request["limit"])
        return {"milliseconds": (time.perf_counter() - started) * 1000, "ids": ids}
    return {"resident": _resident(), "bytes": _size(Path(sys.argv[2]))}


def _vector(encoded):
    return None if encoded is None else array("f", base64.b64decode(encoded))


def _resident():
    """Return what the process holds, in MB; None where the system does not say it."""
    listed = Path("/proc/self/statm")
    if not listed.exists():
        return None
    return int(listed.read_text("utf-8").split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def _size(folder):
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


if __name__ == "__main__":
    main()
