"""Figures: numbers in, a matplotlib figure out. matplotlib is imported only when a figure is drawn."""
