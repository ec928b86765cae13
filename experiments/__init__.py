"""The paper's comparisons: data, methods, one trainer, tables and pictures."""
