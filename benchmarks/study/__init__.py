"""Set losses against cross-entropy, each tuned as well as the other, on rows that chose nothing."""
