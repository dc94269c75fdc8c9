"""What the world answers: devices that compute, uploads that arrive or not, joules, seconds and records."""
