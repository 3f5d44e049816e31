"""What a verification finds: issues with stable codes, and the report that holds them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

Severity = Literal["error", "warning"]


@dataclass(frozen=True, slots=True)
class Issue:
    """One thing that is wrong; ``code`` is stable and for programs, ``path`` names the place."""

    severity: Severity
    code: str
    message: str
    path: str = ""

    def as_dict(self) -> dict[str, str]:
        """Return the issue as JSON values."""
        return {
            "severity": self.severity,
            "code": self.code,
            "message": self.message,
            "path": self.path,
        }


@dataclass(frozen=True, kw_only=True)
class Report:
    """The outcome of a verification: ``ok`` when no issue is an error.

    ``counts`` says how much was looked at, ``main`` the commit that was verified, and ``since``
    the commit after which history was read (empty: all of it).
    """

    issues: tuple[Issue, ...]
    counts: dict[str, int]
    main: str = ""
    since: str = ""

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong; warnings do not count."""
        return self.error_count == 0

    @property
    def error_count(self) -> int:
        """How many issues are errors."""
        return sum(issue.severity == "error" for issue in self.issues)

    def as_dict(self) -> dict[str, Any]:
        """Return the report as JSON values."""
        return {
            "ok": self.ok,
            "error_count": self.error_count,
            "issues": [issue.as_dict() for issue in self.issues],
            "counts": dict(self.counts),
            "main": self.main,
            "since": self.since,
        }


class Findings:
    """Issues and counts as they are collected; a flood of one code is cut, and the cut is said."""

    PER_CODE_MAX = 200

    def __init__(self) -> None:
        self._issues: list[Issue] = []
        self._per_code: dict[str, int] = {}
        self.counts: dict[str, int] = {}

    def error(self, code: str, message: str, path: str = "") -> None:
        """Note something that is wrong."""
        self._add(Issue("error", code, message, path))

    def warning(self, code: str, message: str, path: str = "") -> None:
        """Note something that somebody may want to know."""
        self._add(Issue("warning", code, message, path))

    def count(self, what: str, number: int = 1) -> None:
        """Count what was looked at."""
        self.counts[what] = self.counts.get(what, 0) + number

    def report(self, *, main: str, since: str) -> Report:
        """Return everything that was found."""
        issues = list(self._issues)
        for code, number in self._per_code.items():
            if number > self.PER_CODE_MAX:
                severity: Severity = next(i.severity for i in issues if i.code == code)
                more = number - self.PER_CODE_MAX
                issues.append(Issue(severity, code, f"and {more} more of this kind"))
        return Report(issues=tuple(issues), counts=dict(self.counts), main=main, since=since)

    def _add(self, issue: Issue) -> None:
        self._per_code[issue.code] = self._per_code.get(issue.code, 0) + 1
        if self._per_code[issue.code] <= self.PER_CODE_MAX:
            self._issues.append(issue)
