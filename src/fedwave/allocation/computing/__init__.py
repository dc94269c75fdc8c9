"""(SP1): the CPU frequencies of a round and what computing costs. Inside: methods are built from it."""
