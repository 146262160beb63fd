"""Structural schemas of built-in kinds and CRDs: one form, walked by decoding, defaulting, validation and patches."""
