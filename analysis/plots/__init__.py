"""Figures from tables. Every function returns a matplotlib Figure drawn without a display; see style.py for the look."""
