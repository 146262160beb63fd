"""The image builder: what it leaves out, what it writes, and that the Dockerfile says the same."""
