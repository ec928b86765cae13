"""The paper's Table 1 with every mark measured: `python -m experiments table-one`."""
