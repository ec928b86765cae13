"""Sentential decision diagrams by PySDD, which runs in a process of its own."""
