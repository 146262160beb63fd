"""Tests of the dashboard: the view (tables and a golden), what follows the cluster, and what is served."""
