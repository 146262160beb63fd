"""The admission webhooks: defaults and validation of the custom resources."""
