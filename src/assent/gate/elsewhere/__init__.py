"""The gate of a process elsewhere: `inbox` sends its steps to an Assent server, where `desk` performs them.

The process asks and continues its graph itself. Only the records are on the server: questions, answers and grants.
"""
