"""From configuration to run folders: composing, planning, running, resuming."""
