"""Networks for other runtimes: ONNX files and torch programs of standard operators only, which need no semprola."""

from semprola.export.programs import module, onnx, program, save_program

__all__ = ["module", "onnx", "program", "save_program"]
