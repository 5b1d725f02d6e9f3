"""Rows that a model chooses to be labelled against random ones, at equal time of labelling."""
