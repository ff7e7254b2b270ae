"""The reference assistant's commands."""
