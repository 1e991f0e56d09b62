"""The report: `write_report` puts everything about some runs into one HTML file that opens offline."""

from analysis.report.write import write_report

__all__ = ["write_report"]
