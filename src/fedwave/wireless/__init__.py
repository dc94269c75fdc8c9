"""The radio and the devices' hardware: rates, delays, energies, channels. Knows no model and no learning.

Physics is here and in ``channels``; ``settings`` reads a cell from TOML, ``describe`` says what is in one.
"""
