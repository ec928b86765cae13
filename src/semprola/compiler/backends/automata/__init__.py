"""Our own decision diagrams: every rule is a state machine, and all of them read the variables in one order."""
