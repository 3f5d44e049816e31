"""The agent hook: `rooms hook agent`, which agents' clients call (docs/agent-hooks.md).

It starts before click and exits 0 whatever happens: in a client, exit 2 erases a prompt or keeps
an agent from stopping. Importing this package imports nothing else.
"""
