"""The commands of the command line, a module for each group; `semprola.cli` lists them."""
