"""Pages: one HTML file that opens offline, with charts that answer to the mouse. No library, no network."""
