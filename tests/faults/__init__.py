"""Faults: kills, power cuts, full disks and other people's git, on real repositories."""
