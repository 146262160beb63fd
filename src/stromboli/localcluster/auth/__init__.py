"""Who is asking, and whether they may: bearer tokens, client certificates, RBAC and the review kinds."""
