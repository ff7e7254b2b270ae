// The browser-only inbox: this script reads a deployment's interrupts and answers them. The key is sent to that deployment only.
const KEPT = "assent.inboxes";
const MOST = 100;
const REFRESH = 5000;
const main = document.getElementById("main");
const { origin, ...words } = main.dataset;
const labels = Object.assign({}, ...[...document.getElementById("words").content.children].map((label) => ({ [Object.keys(label.dataset)[0]]: label.textContent })));
const copy = (id) => document.getElementById(id).content.firstElementChild.cloneNode(true);

class Problem extends Error {}

// Texts. Numbers keep every digit, and characters that cannot be seen are spelled out.

const sameNumber = (value, source) => String(value) === source;
const exactly = (text) => JSON.parse(text, (_, value, { source }) => (typeof value === "number" && !sameNumber(value, source) ? JSON.rawJSON(source) : value));
const units = (character) => [...Array(character.length).keys()].map((place) => character.charCodeAt(place).toString(16).padStart(4, "0"));
const UNSEEN = /[^\P{C}\n]|[^\P{Z} ]|[\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0]/gu;
const asJson = (value) => JSON.stringify(value, null, 2).replace(UNSEEN, (character) => units(character).map((unit) => `\\u${unit}`).join(""));
const spelled = (text) => text.replace(UNSEEN, (character) => `⟨U+${character.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`);

function parsed(text) {
  try {
    return exactly(text);
  } catch (error) {
    throw new Problem(`${words.json} ${error.message}`);
  }
}

// Inboxes of this browser.

const inboxes = () => JSON.parse(localStorage.getItem(KEPT) ?? "[]");
const keep = (kept) => localStorage.setItem(KEPT, JSON.stringify(kept));
const originOf = (inbox) => new URL(inbox.url).origin;
const address = (inbox) => `?origin=${encodeURIComponent(originOf(inbox))}#${inbox.id}`;
const current = () => inboxes().find((inbox) => inbox.id === location.hash.slice(1) && originOf(inbox) === origin);

function add(form) {
  const { graph, url, name, key } = Object.fromEntries(new FormData(form));
  const inbox = { id: crypto.randomUUID?.() ?? String(Date.now()), name: name.trim() || graph.trim(), graph: graph.trim(), url: url.trim().replace(/\/+$/, ""), key: key.trim() };
  keep([...inboxes(), inbox]);
  location.assign(address(inbox));
}

function row(inbox) {
  const shown = copy("inbox-row");
  const link = shown.querySelector(".open");
  link.textContent = spelled(inbox.name);
  link.href = address(inbox);
  if (inbox.id === current()?.id) link.setAttribute("aria-current", "page");
  shown.querySelector("code").textContent = inbox.url;
  shown.querySelector(".forget").addEventListener("click", () => {
    keep(inboxes().filter((other) => other.id !== inbox.id));
    location.assign(location.pathname);
  });
  return shown;
}

// The deployment.

async function call(inbox, path, body) {
  const headers = { "content-type": "application/json", ...(inbox.key && { "x-api-key": inbox.key }) };
  const sent = body === undefined ? {} : { method: "POST", body: JSON.stringify(body) };
  const options = { headers, credentials: "omit", redirect: "error", referrerPolicy: "no-referrer", ...sent };
  const response = await fetch(inbox.url + path, options).catch(() => {
    throw new Problem(words.unreachable);
  });
  if (response.status === 401 || response.status === 403) throw new Problem(words.refused);
  const text = await response.text();
  if (!response.ok) throw new Problem(`${words.failed} ${response.status} ${spelled(text.slice(0, 300))}`);
  try {
    return exactly(text);
  } catch {
    throw new Problem(words.other);
  }
}

const isId = (graph) => /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(graph);

async function waitingThreads(inbox) {
  const metadata = { [isId(inbox.graph) ? "assistant_id" : "graph_id"]: inbox.graph };
  const threads = await call(inbox, "/threads/search", { status: "interrupted", metadata, limit: MOST });
  if (!Array.isArray(threads)) throw new Problem(words.other);
  return threads;
}

/** The questions of a thread. Older servers have them in its state only. */
async function questionsOf(inbox, thread) {
  let interrupts = Object.values(thread.interrupts ?? {}).flat();
  if (!interrupts.length) {
    const state = await call(inbox, `/threads/${thread.thread_id}/state`);
    interrupts = (state.tasks ?? []).flatMap((task) => task.interrupts ?? []);
  }
  return interrupts.map(({ id, interrupt_id, value }) => ({ thread: thread.thread_id, id: id ?? interrupt_id, value }));
}

async function questions(inbox) {
  const threads = await waitingThreads(inbox);
  return { many: threads.length === MOST, listed: (await Promise.all(threads.map((thread) => questionsOf(inbox, thread)))).flat() };
}

const content = (question) => JSON.stringify([question.thread, question.id, question.value]);

async function send(inbox, question, answer) {
  const thread = await call(inbox, `/threads/${question.thread}`);
  const pending = await questionsOf(inbox, thread);
  if (!pending.some((other) => content(other) === content(question))) throw new Problem(words.changed);
  const resume = question.id ? { [question.id]: answer } : answer;
  await call(inbox, `/threads/${question.thread}/runs`, { assistant_id: inbox.graph, command: { resume }, multitask_strategy: "reject" });
}

// Forms: one per way of asking. Each returns the fields, and the buttons with the answers that they send.

function field(name, label, text, editable = true) {
  const part = copy(name);
  if (label) part.querySelector(".label").textContent = label;
  const area = part.querySelector("textarea");
  if (area) Object.assign(area, { value: text, defaultValue: text, readOnly: !editable });
  return part;
}

const area = (part) => part.querySelector("textarea");
const isChanged = (part) => area(part).value !== area(part).defaultValue;

function typedText(part) {
  if (!area(part).value.trim()) throw new Problem(words.missing);
  return area(part).value;
}

/** One call in the format of Agent Inbox: accept, edit, respond, ignore. */
function inboxForm(request) {
  const { action_request: action, config, description } = request;
  const call = field("part-arguments", "", asJson(action.args ?? {}), config.allow_edit);
  const reply = field("part-text", "", "");
  const affirm = () => {
    if (config.allow_respond && area(reply).value.trim()) throw new Problem(words.undecided);
    if (!isChanged(call) && config.allow_accept) return [{ type: "accept", args: action }];
    return [{ type: "edit", args: { ...action, args: parsed(area(call).value) } }];
  };
  const respond = () => [{ type: "response", args: typedText(reply) }];
  const buttons = [
    (config.allow_accept || config.allow_edit) && { label: () => (isChanged(call) || !config.allow_accept ? words.edited : labels.accept), answer: affirm },
    config.allow_respond && { label: () => labels.respond, answer: respond },
    config.allow_ignore && { label: () => labels.ignore, answer: () => [{ type: "ignore", args: null }], refuses: true },
  ];
  return { title: action.action, description, parts: [call, config.allow_respond && reply].filter(Boolean), buttons: buttons.filter(Boolean) };
}

/** One of several calls in LangChain's format. */
function callParts(action, review, edited) {
  const allowed = review?.allowed_decisions ?? review?.allowedDecisions ?? ["approve", "reject"];
  const call = field("part-arguments", action.name, asJson(action.args ?? {}), allowed.includes("edit"));
  const verdict = copy("part-verdict");
  verdict.querySelector("select").append(...allowed.map((verb) => new Option(labels[verb] ?? verb, verb)));
  const reply = field("part-text", "", "");
  const decide = () => {
    const type = verdict.querySelector("select").value;
    if (isChanged(call) && type !== "edit") throw new Problem(words.unchosen);
    if (type === "edit") return { type, [edited]: { name: action.name, args: parsed(area(call).value) } };
    if (type === "approve") return { type };
    return { type, message: type === "respond" ? typedText(reply) : area(reply).value };
  };
  return { parts: [call, verdict, reply], decide };
}

/** A request of LangChain's middleware; that for JavaScript spells the fields in its own way. */
function callsForm(request) {
  const actions = request.action_requests ?? request.actionRequests;
  const reviews = request.review_configs ?? request.reviewConfigs ?? [];
  const edited = request.action_requests ? "edited_action" : "editedAction";
  const reviewOf = ({ name }) => reviews.find((review) => (review.action_name ?? review.actionName) === name);
  const calls = actions.map((action) => callParts(action, reviewOf(action), edited));
  const answer = () => ({ decisions: calls.map((call) => call.decide()) });
  return {
    title: actions.map((action) => action.name).join(", "),
    description: actions.map((action) => action.description).filter(Boolean).join("\n\n"),
    parts: calls.flatMap((call) => call.parts),
    buttons: [{ label: () => labels.send, answer }],
  };
}

/** Everything else: the value is shown, and the answer is a text or JSON. */
function openForm(value) {
  const isText = typeof value === "string";
  const reply = field("part-text", "", "");
  const json = copy("part-json");
  const answer = () => (json.querySelector("input").checked ? parsed(area(reply).value) : typedText(reply));
  const parts = isText ? [reply, json] : [field("part-arguments", labels.question, asJson(value), false), reply, json];
  return { title: isText ? value : labels.question, parts, buttons: [{ label: () => labels.respond, answer }] };
}

function formOf(value) {
  const request = Array.isArray(value) && value.length === 1 ? value[0] : value;
  if (request?.action_request && request.config) return inboxForm(request);
  return Array.isArray(request?.action_requests ?? request?.actionRequests) ? callsForm(request) : openForm(value);
}

function card(inbox, question) {
  const shown = copy("question-card");
  const { title, description, parts, buttons } = formOf(question.value);
  shown.dataset.content = content(question);
  shown.querySelector(".title").textContent = spelled(String(title));
  shown.querySelector(".thread-id").textContent = question.thread;
  shown.querySelector(".parts").append(...parts);
  shown.querySelector(".description").hidden = !description;
  shown.querySelector(".description pre").textContent = spelled(String(description ?? ""));
  const pressed = buttons.map((button) => [button, Object.assign(document.createElement("button"), { type: "button" })]);
  const label = () => pressed.forEach(([button, element]) => (element.textContent = button.label()));
  for (const [button, element] of pressed) {
    element.className = button.refuses ? "refuse" : button === buttons[0] ? "primary" : "";
    element.addEventListener("click", () => answerWith(inbox, question, shown, button.answer));
  }
  shown.querySelector(".buttons").append(...pressed.map(([, element]) => element));
  shown.addEventListener("input", label);
  shown.addEventListener("submit", (event) => event.preventDefault());
  label();
  return shown;
}

async function answerWith(inbox, question, shown, answer) {
  const problem = shown.querySelector(".problem");
  const buttons = [...shown.querySelectorAll("button")];
  problem.hidden = true;
  buttons.forEach((button) => (button.disabled = true));
  try {
    await send(inbox, question, answer());
    close(shown, words.sent);
    say(words.sent);
  } catch (error) {
    problem.hidden = false;
    problem.firstElementChild.textContent = error.message;
    buttons.forEach((button) => (button.disabled = false));
  }
}

/** A question that is over keeps its place, so that no other one moves under the pointer. */
function close(shown, why) {
  const over = Object.assign(document.createElement("p"), { textContent: why });
  shown.style.minHeight = `${shown.offsetHeight}px`;
  shown.querySelector(".buttons").replaceChildren(over);
  shown.inert = true;
  delete shown.dataset.content; // the same question can be asked again
}

// The page.

const state = document.getElementById("state");

function say(text) {
  state.textContent = text;
  document.getElementById("said").textContent = text;
}

const isTouched = (shown) => shown.contains(document.activeElement) || [...shown.querySelectorAll("textarea")].some((text) => text.value !== text.defaultValue);

/** Adds the new questions. Those that are gone leave once nobody points at the list, except where somebody types: sending
 * says that it is gone. */
function show(inbox, listed) {
  const place = document.getElementById("questions");
  const asked = new Map(listed.map((question) => [content(question), question]));
  const used = place.matches(":hover, :focus-within");
  for (const shown of [...place.children]) {
    if (shown.inert ? used : asked.delete(shown.dataset.content) || isTouched(shown)) continue;
    if (used) close(shown, words.gone);
    else shown.remove();
  }
  place.append(...[...asked.values()].map((question) => card(inbox, question)));
}

async function refresh(inbox) {
  try {
    const { listed, many } = await questions(inbox);
    show(inbox, listed);
    state.textContent = many ? words.many : listed.length ? "" : words.none;
  } catch (error) {
    say(error.message);
  }
  setTimeout(() => refresh(inbox), REFRESH);
}

function open(inbox) {
  document.getElementById("waiting").hidden = false;
  document.getElementById("waiting-title").textContent = spelled(inbox.name);
  if (JSON.rawJSON) refresh(inbox);
  else say(words.browser);
}

document.getElementById("kept").append(...inboxes().map(row));
document.getElementById("new-inbox").addEventListener("submit", (event) => {
  event.preventDefault();
  add(event.target);
});
addEventListener("hashchange", () => location.reload());
if (current()) open(current());
