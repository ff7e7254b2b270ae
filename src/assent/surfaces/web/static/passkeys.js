// Passkeys: registration on the account page, and confirmation of approvals.
const bytes = (text) => Uint8Array.from(atob(text.replace(/-/g, "+").replace(/_/g, "/")), (one) => one.charCodeAt(0));
const text = (buffer) => btoa(String.fromCharCode(...new Uint8Array(buffer))).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");
const described = (credentials) => credentials.map((one) => ({ ...one, id: bytes(one.id) }));

/** The credential's response as JSON. */
function answered(credential) {
  const { response } = credential;
  const parts = ["clientDataJSON", "attestationObject", "authenticatorData", "signature", "userHandle"].filter((name) => response[name]);
  const fields = Object.fromEntries(parts.map((name) => [name, text(response[name])]));
  if (response.getTransports) fields.transports = response.getTransports();
  return { id: credential.id, rawId: text(credential.rawId), type: credential.type, response: fields, clientExtensionResults: {} };
}

/** Signs with the person's passkey; throws if they cancel or have none here. */
export async function prove(options) {
  const publicKey = { ...options, challenge: bytes(options.challenge), allowCredentials: described(options.allowCredentials) };
  return answered(await navigator.credentials.get({ publicKey }));
}

async function made(options) {
  const user = { ...options.user, id: bytes(options.user.id) };
  const publicKey = { ...options, user, challenge: bytes(options.challenge), excludeCredentials: described(options.excludeCredentials) };
  return answered(await navigator.credentials.create({ publicKey }));
}

class Refused extends Error {}

async function post(path, body) {
  const response = await fetch(path, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) });
  const answer = await response.json().catch(() => ({}));
  if (!response.ok) throw new Refused([answer.detail ?? response.status, answer.hint].filter(Boolean).join(". "));
  return answer;
}

async function add(form) {
  const credential = await made(await post("/api/passkeys/registration", {}));
  await post("/api/passkeys", { name: form.elements.name.value, credential });
  location.assign(form.dataset.done);
}

const form = document.getElementById("add-passkey");
if (form) {
  form.hidden = false;
  const notice = form.querySelector(".notice");
  const show = (words) => {
    notice.hidden = !words;
    notice.firstElementChild.textContent = words;
  };
  if (!globalThis.PublicKeyCredential) {
    form.querySelector("button").disabled = true;
    show(form.dataset.unsupported);
  }
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const button = form.querySelector("button");
    button.disabled = true;
    show("");
    try {
      await add(form);
    } catch (error) {
      const { failed, known, cancelled } = form.dataset;
      show(error instanceof Refused ? `${failed} ${error.message}` : error.name === "InvalidStateError" ? known : cancelled);
    } finally {
      button.disabled = false;
    }
  });
}
