"""Plans of administrative operations: made and reported first, then applied in one transaction."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from agent_chatroom_ledger.domain.clock import from_micros, new_id
from agent_chatroom_ledger.domain.reports import NOOP, Action, operation_report

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

NOTHING = "nothing"


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What an operation would do: ``actions`` and ``warnings`` are sentences for a person.

    ``report`` says the same as JSON values. ``apply`` does it and returns the report of what was
    done; it may raise where the ledger has changed since the plan was made. ``steps`` are the
    actions as the report has them; without any there is one for each sentence.
    """

    operation: str
    room: str
    actions: tuple[str, ...]
    warnings: tuple[str, ...] = ()
    requested_by: str = ""
    reason: str = ""
    details: dict[str, Any] = field(default_factory=dict)
    steps: tuple[Action, ...] = ()
    source: Mapping[str, Any] | None = None
    target: Mapping[str, Any] | None = None
    provenance: Mapping[str, Any] | None = None
    compile_policy: Mapping[str, Any] | None = None
    carry_out: Callable[[], dict[str, Any]] = field(repr=False, compare=False)

    @cached_property
    def report(self) -> dict[str, Any]:
        """The plan as JSON values: ``operation``, ``room`` and ``reason``, then a report's fields.

        Its ``operation_id`` and ``created_at`` are provisional: an applied operation has those of
        its record.
        """
        return self._report(applied=False)

    def apply(self) -> dict[str, Any]:
        """Do it, and return the report with what came of it."""
        done = self.carry_out()
        changed = any(step.status != NOOP for step in self._steps())
        return {**self._report(applied=changed), "dry_run": False, **done}

    def _steps(self) -> tuple[Action, ...]:
        return self.steps or tuple(
            Action(
                type=self.operation,
                text=sentence,
                status=NOOP if sentence.startswith(NOTHING) else "",
            )
            for sentence in self.actions
        )

    def _report(self, *, applied: bool) -> dict[str, Any]:
        micros = time.time_ns() // 1000
        return {
            "operation": self.operation,
            "room": self.room,
            "reason": self.reason,
            **operation_report(
                self.operation,
                operation_id=new_id(micros, os.urandom(10)),
                created_at=from_micros(micros),
                requested_by=self.requested_by,
                applied=applied,
                actions=self._steps(),
                source=self.source,
                target=self.target,
                provenance=self.provenance,
                compile_policy=self.compile_policy,
                warnings=self.warnings,
            ),
            **self.details,
        }
