// A sign-in link carries its token in the fragment, which browsers do not send: hand it over, once, by the form.
function handOver() {
  const token = location.hash.slice(1);
  if (!token) return;
  history.replaceState(null, "", location.pathname + location.search);
  const field = document.getElementById("credential");
  field.type = "hidden"; // not a password for the browser to offer to keep
  field.value = token;
  document.getElementById("login").requestSubmit();
}

addEventListener("hashchange", handOver); // a link pasted where this page is open already
handOver();
