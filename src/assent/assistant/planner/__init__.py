"""The offline planner: a chat model with tool calling that works by rules, so that the demo needs no key.

A sentence is read into goals by the table of intents (`intents.table`; `reading` for days and times, by the rules in
`dates`), a conversation is replayed over them (`plan`, `outcomes`), and what is due next (`steps`) becomes calls, a
question, or an answer. Chinese is put into English on its way in, and the sentences into Chinese on their way out.
`model.OfflinePlanner` is the chat model, `routing.route` the policy router. It asks about text that it cannot read.
"""
