// A sign-in link has its token in the fragment, which browsers do not send: submit it once with the form.
function submitToken() {
  const token = location.hash.slice(1);
  if (!token) return;
  history.replaceState(null, "", location.pathname + location.search);
  const field = document.getElementById("credential");
  field.type = "hidden"; // so that the browser does not offer to save it as a password
  field.value = token;
  document.getElementById("login").requestSubmit();
}

addEventListener("hashchange", submitToken); // a link pasted into an open sign-in page
submitToken();
