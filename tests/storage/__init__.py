"""Tests of the Agent Chatroom Ledger; their folders mirror the source tree."""
