"""The command line: one file per noun, over the same services as every other surface."""
