"""Tables of the paper, redone with this library."""
