"""Tests that run the real Hermes Agent against a scripted model."""
