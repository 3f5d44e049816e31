"""Examples that run as they stand, offline, in directories that they remove again."""
