"""Other memories and searches on the same work: each in a process of its own, some in an environment of its own."""
