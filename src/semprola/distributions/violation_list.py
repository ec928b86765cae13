"""What `violations` returns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from semprola._notebook import code, heading, more, shown, table, text

if TYPE_CHECKING:
    from semprola.distributions.violations import Violation

_SHOWN = 20


class Violations(list["Violation"]):
    """A list of violations, which notebooks show as a table."""

    @shown
    def _repr_html_(self) -> str | None:
        if not self:
            return heading("no row breaks a rule")
        rows = []
        for each in self[:_SHOWN]:
            values = ", ".join(f"{name}={value}" for name, value in each.values.items())
            rows.append([text(each.row), code(each.rule), code(values)])
        return table(["row", "breaks", "because of"], rows, numbers=[0]) + more(len(self) - _SHOWN, "violations")
