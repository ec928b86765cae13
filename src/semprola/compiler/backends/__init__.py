"""Back ends: each compiles groups of conjuncts that share no variable to a circuit, within a budget."""
