"""Runs on disk: start one, resume one, read and compare finished ones."""
