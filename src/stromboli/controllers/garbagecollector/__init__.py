"""Collecting finished jobs once their time to live has passed (spec 03 section 9)."""
