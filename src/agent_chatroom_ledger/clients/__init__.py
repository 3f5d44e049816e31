"""The clients that agents run in: where their files are, and how ours go in and out of them.

What is known of each client was read off the real program (docs/setup.md names the versions).
Nothing here starts a client's own `mcp add`: two of them drop other settings.
"""
