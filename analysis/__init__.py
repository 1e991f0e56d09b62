"""From run folders to tables, plots and a report. Reads recorded files only, never a live object."""
