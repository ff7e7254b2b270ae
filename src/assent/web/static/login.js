// A sign-in link carries its token in the fragment, which browsers do not send: hand it over, once, by the form.
const token = location.hash.slice(1);
if (token) {
  history.replaceState(null, "", location.pathname + location.search);
  const field = document.getElementById("credential");
  field.type = "hidden"; // not a password for the browser to offer to keep
  field.value = token;
  document.getElementById("login").requestSubmit();
}
