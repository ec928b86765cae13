"""The queries on a plan, as functions of tensors. This is the only place that chooses a back end.

`values` has the value of a circuit, its posterior and its support; `likelihoods`, `gates` and `marginals` have the
probability of states, fully or partly observed. These have exact derivatives. `choices` has the best states and
samples. For tracing compilers and function transforms, the functions are also registered as torch operators.
"""
