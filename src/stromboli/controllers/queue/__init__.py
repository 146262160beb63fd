"""The queue controller: opens, closes and drains queues, down the hierarchy (spec 03 section 4)."""
