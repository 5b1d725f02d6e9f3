"""What users would write, or pick, instead of skdice."""
