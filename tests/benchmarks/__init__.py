"""Speed and size beside their peers; run `python -m tests.benchmarks`, nothing here is a test."""
