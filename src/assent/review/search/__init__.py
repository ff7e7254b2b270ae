"""Search over items: the terms of the filter language, the words of an item, and its row in the index."""
