"""What the calendar's tools need of a calendar (`port`), and the built-in one, which is a file (`file`)."""
