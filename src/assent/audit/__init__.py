"""The audit trail: search, verify, export and erase the timeline; sign its heads; record refused attempts."""
