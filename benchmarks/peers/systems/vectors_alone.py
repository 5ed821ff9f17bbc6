"""The vector arm of this source alone."""

from text_alone import Text


class Vectors(Text):
    """What the vector arm finds."""

    arm = "vectors"


open_memory = Vectors
