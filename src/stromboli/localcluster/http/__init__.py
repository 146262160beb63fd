"""The API over HTTP: an aiohttp application around a registry."""
