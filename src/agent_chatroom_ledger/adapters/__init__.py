"""Doors for other formats: each module turns one foreign format into drafts and posts them."""
