"""Predict costs, then decide: shortest paths whose costs are predicted, beside PyEPO's methods."""
