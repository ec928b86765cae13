"""Data of the experiments: loaders, generators and splits."""

from experiments.data.dataset import Dataset, Split, group_split, published_split
from experiments.data.files import find_file
from experiments.data.grids import generate_grids, grid_graph, load_grids, turned_grids
from experiments.data.sushi import generate_rankings, load_sushi, read_preflib

__all__ = [
    "Dataset",
    "Split",
    "find_file",
    "generate_grids",
    "generate_rankings",
    "grid_graph",
    "group_split",
    "load_grids",
    "load_sushi",
    "published_split",
    "read_preflib",
    "turned_grids",
]
