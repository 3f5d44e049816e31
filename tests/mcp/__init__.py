"""Tests of the MCP server, with the official client: in memory, over pipes and over HTTP."""
