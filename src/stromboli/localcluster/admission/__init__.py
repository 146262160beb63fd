"""What happens to a write between its decoding and the store: the built-in admission plugins and the webhooks."""
