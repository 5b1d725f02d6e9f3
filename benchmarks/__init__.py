"""Benchmarks: quality on real corpora, speed and memory against other tools."""
