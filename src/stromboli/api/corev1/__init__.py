"""Pod templates and claims as the custom resources embed them: every field of Kubernetes 1.35."""
