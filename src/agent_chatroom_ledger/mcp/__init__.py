"""The MCP server: twelve tools, rooms as resources, over standard streams and over HTTP.

The only importer of the official `mcp` SDK, which is the extra `[mcp]`. This package imports
nothing by itself; `catalogue` and `greeting` do without the SDK, whose import takes a second, so
that a client is answered before it is loaded.
"""
