"""The demo: what the same accuracy costs five schemes over a street cell."""
