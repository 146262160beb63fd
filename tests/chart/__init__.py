"""The Helm chart: what it renders, what it refuses, and that it fits the processes it starts."""
