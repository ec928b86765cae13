"""Sentential decision diagrams by PySDD, which runs in its own process."""
