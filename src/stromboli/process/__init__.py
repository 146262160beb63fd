"""What every process needs to start, lead and stop: flags, signals, leadership."""
