"""Does a set loss raise F1? All losses, with an equal budget of tuning, on sets of four tasks."""
