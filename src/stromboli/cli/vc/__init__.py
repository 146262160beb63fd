"""vcctl, the short commands and the kubectl plugins (spec 08 sections 1 to 3)."""
