"""The frame of vcctl and its relatives: command trees, flags, help screens, exit codes. Imports next to nothing."""
