"""How a ledger lies on disk: the journal, the logs, the commits, and everything derived from them.

The only package that imports dulwich, and it does so inside functions: reading the present state
of a ledger needs no git objects and must not pay for them.
"""
