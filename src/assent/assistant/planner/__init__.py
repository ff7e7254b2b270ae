"""The offline planner: a chat model with tool calling that works by rules, so that the demo needs no key.

A request is prepared (Chinese times become the English phrases that `dates` reads) and split into clauses; the table of
intents reads each clause into goals (`intents.slots` has the times, names, people and places in it). A conversation is
replayed over the goals (`plan`, `outcomes`), and what is due next (`steps`) becomes calls, a question, or an answer:
messages of one catalogue in both languages (`replies`). `model.OfflinePlanner` is the chat model, `routing.route` the
policy router. It asks about text that it cannot read.
"""
