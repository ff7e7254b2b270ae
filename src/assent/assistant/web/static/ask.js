// Enter sends a request to the assistant; Shift and Enter begin a line.
document.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing || !event.target.matches(".ask textarea")) return;
  event.preventDefault();
  event.target.form.requestSubmit();
});
