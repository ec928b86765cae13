"""Our own top-down compiler of clauses, in C++ and in plain Python."""
