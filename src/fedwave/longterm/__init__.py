"""Budgets over whole runs: recorded traces, policies replayed on them, and a bound that none can beat."""
