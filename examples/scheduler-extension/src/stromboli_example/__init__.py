"""A scheduler plugin and an action of one's own."""
