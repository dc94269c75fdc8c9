"""What people are shown of a cell: link budgets, fleets, files of gains; as text and as JSON."""
