"""The explorer: a local page that shows a cell, its allocation and runs, and answers when a slider moves."""
