"""The test suite. `conftest.py` names the plugins that give it its fixtures and its summary."""
