"""Run the command line as ``python -m runtime_memory``, for those who know the interpreter but not where ``mem`` is."""

from runtime_memory.cli import main

if __name__ == "__main__":
    main()
