"""Admission webhooks: which of them a write concerns, the call over TLS, and what to make of the answer."""
