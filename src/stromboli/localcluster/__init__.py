"""An embedded control plane for laptops, tests and demonstrations. Not for production."""
