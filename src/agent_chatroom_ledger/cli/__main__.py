"""`python -m agent_chatroom_ledger.cli`: the command line where no script is installed."""

from __future__ import annotations

from agent_chatroom_ledger.cli import main

if __name__ == "__main__":
    main()
