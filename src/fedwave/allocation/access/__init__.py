"""Accesses beyond one block per device: a shared band, whole blocks, slots in time. Certified, as (P) is."""
