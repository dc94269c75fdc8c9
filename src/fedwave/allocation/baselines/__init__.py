"""The methods to compare with: IVES and the baselines of the paper, and two published ones; a file each."""
