"""The sharding controller: deals the nodes of a cluster out to several schedulers (spec 03 section 10)."""
