"""Every limit of the ledger (invariant 9); the last word of a name is its unit or its sense.

Exceeding a limit is an error that names the limit, never a truncation. Only what is derived for
display (a commit's subject, a cell of a table) is cut, and the cut is shown.
"""

from __future__ import annotations

from typing import Final

# What one record may hold.
AUTHOR_CHARS_MAX: Final = 64
BODY_BYTES_MAX: Final = 262_144
DATA_BYTES_MAX: Final = 65_536
KIND_CHARS_MAX: Final = 64
ID_CHARS_MAX: Final = 128
# reply_to, correlation, cause and status.
REF_FIELD_CHARS_MAX: Final = 256
# Names in ``to`` and in ``mentions``, and attachments in ``artifacts``.
NAMES_MAX: Final = 256
# One log of one origin: segment names have eight digits.
NUMBER_MAX: Final = 99_999_999

# Rooms, their names and their place.
TITLE_CHARS_MAX: Final = 200
SLUG_BYTES_MAX: Final = 80
FOLDER_DEPTH_MAX: Final = 8
ROOM_PATH_BYTES_MAX: Final = 400
MEMBERS_MAX: Final = 1_000
# Rooms that one list for an agent holds.
LIST_ROOMS_MAX: Final = 1_000
# Names that one direct message goes to.
DIRECT_NAMES_MAX: Final = 32
ORIGIN_CHARS_MAX: Final = 32
# A folder that holds this many rooms takes new ones in ``~xx`` directories.
FOLDER_ROOMS_MAX: Final = 256

# What an operation may hold.
# Why somebody asked for it.
REASON_CHARS_MAX: Final = 1_000
# Messages that one list of references may name ("1-500,700").
REFERENCES_MAX: Final = 10_000
# Stand-ins that a room's policy may hold.
STANDINS_MAX: Final = 1_000
# Ranges of messages that a room's policy may leave out.
POLICY_RANGES_MAX: Final = 10_000
# Levels of a message's versions, the message itself among them.
VERSION_LEVELS_MAX: Final = 10
# All levels of one message together, as they are stored.
VERSION_BUNDLE_BYTES_MAX: Final = 4 * 1024 * 1024

# Files: a segment or a page is closed when it has reached one of its limits.
SEGMENT_RECORDS_MAX: Final = 50
SEGMENT_BYTES_MAX: Final = 32_768
PAGE_RECORDS_MAX: Final = 50
PAGE_BYTES_MAX: Final = 32_768

# The write path.
# One transaction's line in the journal.
FRAME_BYTES_MAX: Final = 32 * 1024 * 1024
# Commits that are built and packed at once, which bounds memory.
BATCH_FRAMES_MAX: Final = 500
# Frames after which a checkpoint is due.
CHECKPOINT_FRAMES_MAX: Final = 1_000
# Frames that may wait for their commit in group mode before a write waits for the committer.
BACKLOG_FRAMES_MAX: Final = 4_000
# Messages that one call of post_many takes.
POST_MANY_MAX: Final = 10_000
# Old generations of the journal that stay as a change feed.
JOURNAL_KEPT_BYTES: Final = 4_000_000

# What a commit says.
SUBJECT_CHARS_MAX: Final = 72

# What a server takes.
# Commits that one push may bring.
PUSH_COMMITS_MAX: Final = 1_000_000
# One stored line of a log, with the fields that a newer version may have added.
RECORD_BYTES_MAX: Final = 4 * 1024 * 1024

# What the agent hook takes, says and waits for.
# A client's event; one that is larger is answered as if nothing were there.
HOOK_INPUT_BYTES_MAX: Final = 32 * 1024 * 1024
# Everything that an event is answered with, as UTF-8.
HOOK_CONTEXT_BYTES_MAX: Final = 8_000
# After so long the hook gives up by itself, well before the client does.
HOOK_DEADLINE_SECONDS: Final = 5
# After so long a client gives the hook up.
HOOK_TIMEOUT_SECONDS: Final = 10
# Stops of an agent that may be blocked between two prompts of its user.
STOP_BLOCKS_MAX: Final = 3
# Sessions of which it is kept what they were blocked or woken for.
NUDGE_FILES_MAX: Final = 200
# How long an idle client is listened for.
WAKE_SECONDS_MAX: Final = 28_800
# The log of failures; the older half goes when it is full.
HOOK_LOG_BYTES_MAX: Final = 262_144

# What an agent is handed.
# Messages that one call of the inbox hands over.
DELIVER_MAX: Final = 200
# The settings of a ledger, .git/ledger/config.toml.
CONFIG_BYTES_MAX: Final = 65_536
# Seconds after which a message may be called stale: a year.
STALE_SECONDS_MAX: Final = 31_536_000
# How often a waiting process looks at the journal, in milliseconds.
POLL_MILLISECONDS_MIN: Final = 5
POLL_MILLISECONDS_MAX: Final = 10_000
# Messages that a session may be allowed to send.
SENDS_MAX: Final = 1_000_000

# What the MCP server takes and gives.
# One message of a client, over stdin or as the body of a request.
MCP_MESSAGE_BYTES_MAX: Final = 4 * 1024 * 1024
# Seconds that one call of rooms_inbox waits: clients give up a silent call after 120.
MCP_WAIT_SECONDS_MAX: Final = 100
# Rooms, or messages, that one call gives.
MCP_LIST_MAX: Final = 200
# Bodies in one answer of rooms_read; the first message is whole, however long it is.
MCP_ANSWER_BYTES_MAX: Final = 65_536
# Resources that one connection subscribes to.
MCP_SUBSCRIPTIONS_MAX: Final = 1_000
# Calls that one server works on at a time, each wait among them.
MCP_CALLS_MAX: Final = 256
# Connections over HTTP, and sessions of clients.
MCP_CONNECTIONS_MAX: Final = 1_000
# Bearer tokens of one ledger.
TOKENS_MAX: Final = 1_000

# Who is here.
# An agent's name, suffixes included.
AGENT_NAME_CHARS_MAX: Final = 48
# Pins of one ledger.
PINS_MAX: Final = 1_000
PIN_KEY_CHARS_MAX: Final = 4_096
# How long a claim of a name waits for another claim.
CLAIM_WAIT_SECONDS_MAX: Final = 5

# What a client's own file may hold.
# Larger ones are left alone.
CLIENT_FILE_BYTES_MAX: Final = 16 * 1024 * 1024
