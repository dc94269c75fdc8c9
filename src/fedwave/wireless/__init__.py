"""The radio and the devices' hardware: rates, delays, energies, channels. Knows no model and no learning."""
