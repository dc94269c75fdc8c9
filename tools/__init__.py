"""Tools of the repository, beside the package: `python -m tools.docs` writes generated documentation."""
