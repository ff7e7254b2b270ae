"""The inbox as runs use it: runs answer, withdraw and deliver decisions on the questions of a thread, and mask secrets.

`thread_items`, beside this package, records what a run has asked when it stops or ends. Runs import nothing else of the
inbox but its models and dialects.
"""
