"""The job controller: reconciles `batch.volcano.sh` Jobs (spec 02)."""
