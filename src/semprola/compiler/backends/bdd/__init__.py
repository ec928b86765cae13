"""Binary and zero-suppressed decision diagrams by oxidd, in the same process as PySDD."""
