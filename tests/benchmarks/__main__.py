"""Measure every row of the table of speed and size, and print it.

`python -m tests.benchmarks [--quick] [--only NAME]… [--json FILE] [--irc DIR] [--folder DIR]`

Every figure stands beside its peer of the same run, measured in turns (A B A B); both are medians
of at least five rounds. Nothing is asserted: machines differ, ratios tell. `--quick` takes smaller
ledgers, so its ratios say less.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path

from tests.benchmarks.measure import REPOSITORY, SOURCES, Row, Scale

sys.path.insert(0, str(SOURCES))

from tests.benchmarks import (
    agents,
    archiving,
    importing,
    lenses,
    posting,
    pushing,
    reading,
    talking,
)

GROUPS = {
    **posting.GROUPS,
    **importing.GROUPS,
    **pushing.GROUPS,
    **reading.GROUPS,
    **archiving.GROUPS,
    **lenses.GROUPS,
    **talking.GROUPS,
    **agents.GROUPS,
}
_COPIES = 40


def main() -> int:
    """Measure what was asked for and print the table on standard output."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="smaller ledgers, about a minute")
    parser.add_argument("--only", action="append", choices=sorted(GROUPS), help="one group of rows")
    parser.add_argument("--json", type=Path, help="write the rows with all rounds to this file")
    parser.add_argument("--irc", type=Path, help="directory of channel logs")
    parser.add_argument("--folder", type=Path, help="where the temporary directory is made")
    chosen = parser.parse_args()
    rows: list[Row] = []
    failed: list[str] = []
    with tempfile.TemporaryDirectory(
        prefix="rooms-benchmarks-", dir=chosen.folder, ignore_cleanup_errors=True
    ) as folder:
        scale = Scale(
            quick=chosen.quick, folder=Path(folder), irc=_logs(chosen.irc, Path(folder) / "logs")
        )
        for name in chosen.only or GROUPS:
            begin = time.perf_counter()
            try:
                rows += GROUPS[name](scale)
            except Exception as error:  # noqa: BLE001 - the other rows are worth having
                failed.append(name)
                say(f"{name}: failed, {type(error).__name__}: {error}")
            say(f"{name}: {time.perf_counter() - begin:.1f} s")
    print(table(rows))  # noqa: T201 - the result
    if chosen.json:
        found = {
            "quick": chosen.quick,
            "failed": failed,
            "rows": [row.as_dict() for row in rows],
        }
        chosen.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    return 1 if failed else 0


def say(text: str) -> None:
    """Print what is going on where it does not mix with the table."""
    print(text, file=sys.stderr, flush=True)  # noqa: T201 - talk


def _logs(given: Path | None, folder: Path) -> tuple[Path, ...]:
    """Return the channel logs: those given, those beside the checkout, or the tests' repeated."""
    for place in (given, REPOSITORY.parent / "shared" / "data" / "irc"):
        if place is not None and (found := sorted(place.glob("*.log"))):
            return tuple(found)
    folder.mkdir()
    excerpts = sorted((REPOSITORY / "tests" / "data" / "irc").glob("*.log"))
    text = "".join(path.read_text(encoding="utf-8") for path in excerpts)
    for day in range(48):
        (folder / f"2016-{day // 28 + 1:02}-{day % 28 + 1:02}.log").write_text(
            text * (_COPIES // 4), encoding="utf-8"
        )
    say("no channel logs given (--irc DIR): the import rows use the tests' excerpts, repeated")
    return tuple(sorted(folder.glob("*.log")))


def table(rows: list[Row]) -> str:
    """Return the rows as a Markdown table."""
    lines = [
        "| measure | ours | peer | ratio | must reach | aim | verdict |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        sign = "≥" if row.better == "more" else "≤"
        bounds = ["-" if bound is None else f"{sign} {bound:g}" for bound in (row.must, row.aim)]
        ratio = "-" if row.ratio is None else f"{row.ratio:.3g}"
        cells = [row.measure, row.ours, row.peer, ratio, *bounds, row.verdict()]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
