// A graph that asks whatever its input says, one question after the other, keeps the answers, and records each one in
// the file `log`, as a tool would have its effect.

import { appendFileSync } from "node:fs";
import { Annotation, END, START, StateGraph, interrupt } from "@langchain/langgraph";

const State = Annotation.Root({
  questions: Annotation<unknown[]>(),
  answers: Annotation<unknown[]>({ reducer: (before, more) => before.concat(more), default: () => [] }),
  log: Annotation<string | undefined>(),
});

function ask({ questions, answers, log }: typeof State.State) {
  const question = questions[answers.length];
  const answer = interrupt(question);
  if (log) appendFileSync(log, `${question}\n`);
  return { answers: [answer] };
}

export const graph = new StateGraph(State)
  .addNode("ask", ask)
  .addEdge(START, "ask")
  .addConditionalEdges("ask", ({ questions, answers }) => (answers.length < questions.length ? "ask" : END))
  .compile();
