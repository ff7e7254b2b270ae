"""Chinese at the planner's border: requests are put into its English, and its sentences into Chinese."""
