"""The filter language: its terms, its parser, and the words that a search matches."""
