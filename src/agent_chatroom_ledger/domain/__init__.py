"""The pure part of the ledger: records, folds, views and names; no I/O, no clock, no randomness."""
