"""Exports networks as ONNX files and torch programs of standard operators, which run without semprola."""

from semprola.export.programs import module, onnx, program, save_program

__all__ = ["module", "onnx", "program", "save_program"]
