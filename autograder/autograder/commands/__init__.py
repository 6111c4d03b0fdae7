"""The commands, by when they are used. Each parses, shows, and sets the exit status; no more."""
