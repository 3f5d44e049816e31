"""Tests of the project itself: layers, style, documentation, dependencies, limits."""
