"""Our own top-down compiler of clauses, native and in plain Python."""
