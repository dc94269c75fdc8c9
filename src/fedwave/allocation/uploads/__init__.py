"""(SP2): who uploads on which block at which SNR. Inside: methods are built from it."""
