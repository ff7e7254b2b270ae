"""Use cases, one module per noun: they check rights and compose store functions into one transaction."""
