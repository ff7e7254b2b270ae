"""Other deployments: their questions are listed in this inbox, and decisions go back to them."""
