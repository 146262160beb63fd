"""What a process tells the outside about itself: metrics, health, logs, traces."""
