"""The gang scheduler: pure decisions in core, actions and plugins; the mirror's feed and the writes around them."""
