"""Back ends: each makes a circuit of groups of conjuncts that share no variable, within a budget."""
