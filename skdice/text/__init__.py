"""Between words and pieces: tokenising, windows, tags."""
