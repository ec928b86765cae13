"""What can be asked of a plan, as functions of tensors: the only place that chooses a back end.

Each question is a function with exact derivatives and, for tracing compilers and function transforms, an operator that
torch knows. `values` has the value of a circuit, its posterior and its support, `likelihoods` the probability of
states, `search` the best states and samples.
"""
