"""Leave unloaded what LanceDB loads at its start and a store in a folder or a bucket never needs.

LanceDB imports the client of its REST namespaces, a hundred classes that are built as they are loaded. That is half of
the time of ``import lancedb``, and of most commands.
"""

from __future__ import annotations

import sys
import threading
from importlib.util import find_spec, module_from_spec
from typing import Any

__all__ = ["defer"]

_CLIENT = "lance_namespace_urllib3_client"


def defer(name: str = _CLIENT) -> None:
    """Put a package in its place whose ``__init__`` is run when something in it is first asked for.

    Its modules, the models that LanceDB itself uses among them, are imported as always. Nothing is done for a package
    that is loaded already or not installed.
    """
    spec = None if name in sys.modules else find_spec(name)
    if spec is None or spec.loader is None:
        return
    loader, module, loading = spec.loader, module_from_spec(spec), threading.RLock()
    begun = False

    def load(wanted: str) -> Any:
        nonlocal begun
        with loading:
            if not begun:
                begun = True
                loader.exec_module(module)
        try:
            return vars(module)[wanted]
        except KeyError:
            raise AttributeError(f"module {name!r} has no attribute {wanted!r}", name=wanted, obj=module) from None

    vars(module)["__getattr__"] = load  # what Python calls for a name that a module lacks (PEP 562)
    sys.modules[name] = module
