"""The A2A protocol (Agent2Agent): every assistant is an agent that other agents send messages to."""
