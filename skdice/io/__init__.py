"""Directories of fitted estimators, which skdice and transformers can load."""
