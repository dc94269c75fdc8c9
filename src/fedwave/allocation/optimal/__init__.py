"""The certified optimum of (P): branch and bound over the uploads' delay, by column generation for crowds."""
