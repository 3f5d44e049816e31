"""Tests of the pure part, one file per module; no test here touches a disk but for golden files."""
