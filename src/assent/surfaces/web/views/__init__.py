"""View models: data gathered and shaped for the templates."""
