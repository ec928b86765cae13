"""Binary and zero-suppressed decision diagrams by oxidd, in the same child process as PySDD."""
